"""Hashes of the prompts and of the code that answers: what may move results without any setting being changed."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import okf_agent
import okf_compiler

NO_SAY = (
    "access",
    "commands",
    "downloads",
    "engines",
    "evaluation",
    "interactive",
    "loading",
    "mcp_server",
    "records",
    "results",
    "setup",
)
"""What of the agent does not decide how a question is answered; all else does, but for the prompts, held apart."""
PROMPTS = "prompts"
COMPILER = ("bundle.py", "inert.py", "link_text.py", "markdown.py", "profiling", "sql_names.py", "tokens.py")
"""What of the compiler writes for a model while a question is asked. What it compiles is held by the bundle's hash."""


def installed_hashes() -> dict[str, str]:
    """Return the hashes of the prompts and of the code that answers."""
    agent, compiler = (Path(str(package.__file__)).parent for package in (okf_agent, okf_compiler))
    code = [place for place in agent.iterdir() if place.name not in (*NO_SAY, PROMPTS)]
    code += [compiler / name for name in COMPILER]
    return {"prompts": _hash_of([agent / PROMPTS]), "code": _hash_of(code)}


def _hash_of(places: Iterable[Path]) -> str:
    """One hash over files and folders of a package: names and contents, line ends as on Linux."""
    total = sha256()
    for place in sorted(places):
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file() and file.suffix != ".pyc":
                content = file.read_bytes().replace(b"\r\n", b"\n")
                name = file.relative_to(place.parent).as_posix()
                total.update(f"{name}\0{sha256(content).hexdigest()}\0".encode())
    return total.hexdigest()
