"""The demo, as it ships: the shop with its bundle, and the files that a workspace begins with."""

from __future__ import annotations

import shutil
from pathlib import Path

import okf_agent
from okf_agent.setup.config_file import ignore_files
from okf_compiler.errors import UserError

CONTENTS = (".env.example", "PROVIDERS.md", "bundles/compiled/shop", "data/shop", "docker-compose.yml")
"""What a workspace gets, each whole or not at all. `pyproject.toml` puts them into the wheel, below okf_agent/demo."""
CONFIG = Path(__file__).with_name("config.yaml")
"""Its config.yaml. That of a checkout is not copied: it may name whoever works there, or their model's address."""
NOT_DATA = shutil.ignore_patterns("*.py", "__pycache__", ".*_cache")
"""What made the shop, in a checkout."""


def source() -> Path:
    """Where the demo is: in the installed package, or the checkout that this runs from."""
    package = Path(okf_agent.__file__).parent
    return package / "demo" if (package / "demo").is_dir() else package.parent


def lay_out(root: Path) -> list[str]:
    """Copy what is missing into a workspace; nothing that is there is touched. Gives the paths that were copied.

    Raises:
        UserError: the folder cannot be written.
    """
    copied = []
    origins = {name: source() / name for name in CONTENTS} | {"config.yaml": CONFIG}
    for name, origin in sorted(origins.items()):
        target = root / name
        if target.exists():
            continue
        try:
            _copy(origin, target)
        except OSError as error:
            raise _unwritable(target, error) from None
        copied.append(name)
    try:
        return [*copied, ".gitignore"] if ignore_files(root) else copied
    except OSError as error:
        raise _unwritable(root / ".gitignore", error) from None


def _unwritable(target: Path, error: OSError) -> UserError:
    return UserError(f"{target} cannot be written ({error.strerror}). Go to a folder of your own.")


def _copy(origin: Path, target: Path) -> None:
    """Copy a file or a folder under another name first, so that a copy that was broken off is not taken for it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    if origin.is_dir():
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(origin, partial, ignore=NOT_DATA, copy_function=shutil.copyfile)
    else:
        shutil.copyfile(origin, partial)  # its content alone: what is installed may be read-only
    partial.replace(target)
