"""Every concept of every bundle as a resource: `okf://<database>/<path>`, with its title and description."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import quote as escaped
from urllib.parse import unquote, urlsplit

import mcp_types as types

from okf_agent.bundles import reading
from okf_agent.mcp_server.errors import ClientError
from okf_agent.mcp_server.served import Served, one_of
from okf_agent.models.arguments import quote
from okf_agent.prompts import framing

SCHEME = "okf"
MARKDOWN = "text/markdown"
PAGE = 200
"""Resources in one answer; a longer list goes on in the next."""
TEMPLATES = (
    ("okf://{database}/tables/{table}.md", "table", "A table: its columns, keys and meanings."),
    ("okf://{database}/knowledge/{rule}.md", "rule", "A business rule."),
    ("okf://{database}/{+path}", "file", "Any file or folder index of a bundle."),
)


def uri(database: str, path: str) -> str:
    """The address of a bundle path such as `/tables/orders.md`."""
    return f"{SCHEME}://{escaped(database, safe='')}/{escaped(path.lstrip('/'))}"


def parse(address: str, databases: Sequence[str]) -> tuple[str, str]:
    """The database and the bundle path of an address.

    Raises:
        ClientError: it is no such address, or its database is none of those the client may see.
    """
    try:
        parts = urlsplit(address)
    except ValueError:  # brackets around what is no IPv6 address
        parts = urlsplit("")
    if parts.scheme != SCHEME or not parts.netloc:
        raise ClientError(
            f"{quote(repr(address))} is no resource of this server: they look like okf://{databases[0]}/index.md."
        )
    asked = unquote(parts.netloc)
    name = next((each for each in databases if each.lower() == asked.lower()), None)
    return name or one_of(asked, databases), unquote(parts.path) or "/"


def listing(served: Served, databases: Sequence[str], cursor: str | None) -> types.ListResourcesResult:
    """A page of the resources.

    Raises:
        ClientError: the cursor is none of ours.
        UserError: a bundle cannot be read.
    """
    found = [*_all(served, databases)]
    starts = {str(start): start for start in range(0, max(1, len(found)), PAGE)}
    start = starts.get(cursor or "0")
    if start is None:
        raise ClientError(f"{quote(repr(cursor))} is no cursor of this server. Begin again without one.")
    end = start + PAGE
    return types.ListResourcesResult(resources=found[start:end], next_cursor=str(end) if end < len(found) else None)


def _all(served: Served, databases: Sequence[str]) -> Iterator[types.Resource]:
    for name in databases:
        yield types.Resource(
            uri=uri(name, "/index.md"),
            name=f"{name}/index.md",
            title=f"{name}: index",
            description=f"What the bundle of {name} has.",
            mime_type=MARKDOWN,
        )
        for concept in served.concepts(name).values():
            yield types.Resource(
                uri=uri(name, concept.path),
                name=framing.one_line(f"{name}{concept.path}"),
                title=framing.one_line(concept.title),
                description=framing.one_line(concept.description) or None,
                mime_type=MARKDOWN,
            )


def templates() -> types.ListResourceTemplatesResult:
    """The forms that addresses have."""
    return types.ListResourceTemplatesResult(
        resource_templates=[
            types.ResourceTemplate(uri_template=form, name=name, description=text, mime_type=MARKDOWN)
            for form, name, text in TEMPLATES
        ]
    )


def read(served: Served, databases: Sequence[str], address: str) -> reading.Reading:
    """The file of an address, as `read_file` gives it, without what was measured.

    Raises:
        ClientError: there is none; says what there is.
    """
    name, path = parse(address, databases)
    found = reading.read(served.bundles[name], path + ("#" + urlsplit(address).fragment).removesuffix("#"))
    if found.failed:
        raise ClientError(found.text)
    return replace(found, text=framing.beneath(found.text))
