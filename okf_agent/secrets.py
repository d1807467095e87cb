"""The secrets of the environment, where a text is kept that a model wrote."""

from __future__ import annotations

import json
import os
import re

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
LEAST = 8
"""Characters of a value that is a secret; a shorter one may be any word of a query."""
LEAST_KEY = 32
"""Characters of a key in Base64 that looks like a path."""


def without_secrets(text: str) -> str:
    """JSON text with the value of every variable whose name says that it is a secret as `***`.

    A number or a plain word is none, whatever its variable is called: it would be taken out of queries and rows.
    """
    values = {value for name, value in os.environ.items() if SECRET_NAME.search(name) and _is_secret(value)}
    for secret in sorted(values, key=len, reverse=True):  # one may begin with another
        text = text.replace(json.dumps(secret, ensure_ascii=False)[1:-1], "***")
    return text


def _is_secret(value: str) -> bool:
    return len(value) >= LEAST and not value.isalpha() and not value.isdigit() and not _is_path(value)


def _is_path(value: str) -> bool:
    """Whether it names a file, as a variable may (`…_TOKEN_FILE`): a key in Base64 may begin with a slash as well."""
    if re.fullmatch(r"(/[\w.@-]+)+", value):
        return len(value) < LEAST_KEY or os.path.lexists(value)
    return value.startswith(("./", "../", "~/"))
