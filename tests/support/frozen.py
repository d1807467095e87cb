"""Outputs held to what they were: texts that no refactoring may change, kept in `tests/frozen/`.

    OKF_FREEZE=write pytest tests/frozen -m 'slow or not slow'     # after an intended change: write what is there now
    OKF_FREEZE_TEXTS=DIR pytest tests/frozen                       # also keep every text in DIR, to diff two checkouts

Texts of our own are kept whole. Of others' documents only digests are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "frozen"


def hold(name: str, texts: Mapping[str, str], *, digests: bool = False) -> None:
    """Compare `texts`, by key, with `tests/frozen/<name>.json`, or write that file if OKF_FREEZE is `write`.

    With `digests` the file holds SHA-256 of the texts in place of the texts.
    """
    if kept := os.environ.get("OKF_FREEZE_TEXTS"):
        folder = Path(kept) / name
        folder.mkdir(parents=True, exist_ok=True)
        for key, text in texts.items():
            (folder / key.replace("/", "_").replace(" ", "_")).write_text(text, encoding="utf-8")
    now = {key: _digest(text) for key, text in texts.items()} if digests else dict(texts)
    file = FOLDER / f"{name}.json"
    if os.environ.get("OKF_FREEZE") == "write":
        written = json.dumps({key: _shown(value) for key, value in sorted(now.items())}, indent=1, ensure_ascii=False)
        file.write_text(written + "\n", encoding="utf-8", newline="\n")
        return
    then = {key: _read(value) for key, value in json.loads(file.read_text(encoding="utf-8")).items()}
    assert now.keys() == then.keys()
    for key in now:  # one by one: pytest shows the lines that differ
        assert now[key] == then[key], f"{file.name}: {key} is not what it was; see tests/support/frozen.py"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _shown(text: str) -> str | list[str]:
    """A text of several lines as a list of them, for readable diffs."""
    lines = text.split("\n")
    return lines if len(lines) > 1 else text


def _read(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "\n".join(value)
