"""The three documents as they are, pasted into the instructions: what bundles are compared with."""

from __future__ import annotations

from pathlib import Path

from okf_agent import prompts
from okf_agent.knowledge.model import Knowledge, Sources
from okf_agent.prompts import framing
from okf_compiler.errors import UserError


def prepare(_question: str, sources: Sources) -> Knowledge:
    """The documents as one section; no tool beside the common ones.

    Raises:
        UserError: the database has no documents, or one cannot be read.
    """
    documents = sources.documents
    if documents is None:
        raise UserError(
            f"{sources.database} has no documents to paste, only a bundle. Ask with --knowledge bundle.", status=2
        )
    if documents.live:
        raise UserError(
            f"The tables of {sources.database} come from its server, not from documents to paste. "
            "Ask with --knowledge bundle.",
            status=2,
        )
    section = prompts.load(
        "raw.md",
        schema=framing.inside(_text(documents.schema)),
        meanings=framing.inside(_text(documents.meanings)),
        rules=framing.inside(_text(documents.rules)),
    )
    return Knowledge((section,), grounds=(section,))


def _text(document: Path) -> str:
    """A document's text; "" where there is no such document.

    Raises:
        UserError: it is there and cannot be read, or is not UTF-8.
    """
    try:
        return document.read_text(encoding="utf-8-sig").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{document} cannot be read: {error}. It must be a text file in UTF-8.") from None
