"""Every word the model reads: a file each for what is long, `messages.yaml` for what is short.

`$name` is a variable, `$$` a dollar sign. A variable that is missing, or that the text does not have, is an error.
"""

from __future__ import annotations

import functools
from importlib.resources import files
from string import Template

import yaml


def load(name: str, **variables: object) -> str:
    """The text of the file `name` in this folder, filled in, without the line end at its end."""
    return _fill(name, _read(name).removesuffix("\n"), variables)


def say(key: str, **variables: object) -> str:
    """A short text of `messages.yaml`, filled in."""
    return _fill(key, _messages()[key], variables)


@functools.cache
def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _messages() -> dict[str, str]:
    messages: dict[str, str] = yaml.load(_read("messages.yaml"), Loader=yaml.CSafeLoader)
    return messages


def _fill(name: str, text: str, variables: dict[str, object]) -> str:
    """`text` with its variables; values are put in as they are, whatever `$` they hold.

    Raises:
        KeyError: the variables given are not those of the text.
    """
    template = Template(text)
    if set(template.get_identifiers()) != set(variables):
        raise KeyError(f"{name} takes {sorted(template.get_identifiers())}, was given {sorted(variables)}")
    return template.substitute(variables).strip("\n")
