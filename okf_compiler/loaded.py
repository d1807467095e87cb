"""Bundles that this process has read, kept until a file of theirs changes: for everything that asks again and again."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from okf_compiler.bundle import Bundle, load

KEPT = 32
"""Bundles at once; the one that was not asked for the longest goes first."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class _Kept:
    stamp: int
    bundle: Bundle
    made: dict[Callable[[Bundle], Any], Any] = field(default_factory=dict)
    """What was made of this bundle, by what makes it."""


_kept: OrderedDict[Path, _Kept] = OrderedDict()
_lock = threading.RLock()


def loaded(folder: Path) -> Bundle:
    """The bundle in a folder as it is now, which callers share: nobody may change what is in it.

    Raises:
        UserError: there is no such folder, or a file cannot be read.
    """
    return _fresh(folder).bundle


def derived(folder: Path, make: Callable[[Bundle], _T]) -> _T:
    """What `make` gives for the bundle in a folder, made once for as long as the bundle stays as it is.

    `make` is a function of a module: it is the key. What it raises is raised, and UserError as `loaded` does.
    """
    with _lock:
        kept = _fresh(folder)
        if make not in kept.made:
            kept.made[make] = make(kept.bundle)
        found: _T = kept.made[make]
        return found


def stamp(folder: Path) -> int:
    """A number that changes when a file of the bundle is written, added or removed; 0 where nothing is."""
    marks = []
    for place, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if not each.startswith(".")]
        for file in files:
            try:
                status = os.lstat(os.path.join(place, file))  # noqa: PTH118 - thousands of files a second
            except OSError:
                continue
            marks.append((place, file, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino))
    return hash(tuple(sorted(marks))) if marks else 0


def _fresh(folder: Path) -> _Kept:
    with _lock:  # whoever asks for a bundle that is being read waits for it
        now = stamp(folder)
        kept = _kept.get(folder)
        if kept is None or kept.stamp != now or not now:
            _kept.pop(folder, None)
            kept = _kept[folder] = _Kept(now, load(folder))
            if len(_kept) > KEPT:
                _kept.popitem(last=False)
        _kept.move_to_end(folder)
        return kept
