"""A bundle or a database as people name it on a command line: by its name, or by a folder."""

from __future__ import annotations

from pathlib import Path

from okf_compiler.bundle import index_file, missing
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.settings import Settings


def bundle_folder(settings: Settings, given: str | Path) -> Path:
    """Return the folder of a bundle: a compiled one or one of people's by its name, or any by its path.

    Raises:
        UserError: there is no such bundle; near names are suggested.
    """
    folder, name = Path(given), str(given)
    if is_name(name):
        by_hand = settings.bundles.parent / name
        candidates = [settings.bundles / name, *([by_hand] if index_file(by_hand) else []), folder]
        folder = next((each for each in candidates if each.is_dir()), folder)
    if folder.is_dir():
        return folder
    if not is_name(name):
        raise UserError(missing(folder), status=2)
    near = did_you_mean(name, (each.name for each in settings.bundles.glob("*/")))
    raise UserError(
        f"There is no bundle {name!r} in {settings.bundles}, and no folder of that name{near} "
        "`okf-compiler compile all` makes bundles.",
        status=2,
    )


def database_name(settings: Settings, given: str) -> str:
    """Return the name of a database, which a person may also give by its bundle or the folder of its documents."""
    folder = Path(given)
    if is_name(given) or not folder.is_dir():
        return given
    homes = {home.resolve() for home in (settings.bundles, settings.bundles.parent, *settings.data_roots)}
    return folder.resolve().name if folder.resolve().parent in homes else given


def concept_file(settings: Settings, given: Path) -> Path:
    """Return the file of a concept: as it is given, or behind its bundle's name, as in `shop/knowledge/x.md`."""
    name, *inside = given.parts
    if given.is_file() or not inside or not is_name(name):
        return given
    below = settings.bundles.joinpath(name, *inside)
    return below if below.is_file() else given


def is_name(given: str) -> bool:
    """Return whether it is one name, without a folder before it."""
    return Path(given).name == given not in ("", ".", "..")
