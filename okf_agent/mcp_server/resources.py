"""Every concept of every bundle as a resource: `okf://<database>/<path>`, with its title and description."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote, unquote, urlsplit

import mcp_types as types

from okf_agent.bundles import reading
from okf_agent.mcp_server.served import Served
from okf_compiler.errors import UserError, did_you_mean

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
    return f"{SCHEME}://{quote(database, safe='')}/{quote(path.lstrip('/'))}"


def parse(address: str, databases: Sequence[str]) -> tuple[str, str]:
    """The database and the bundle path of an address.

    Raises:
        UserError: it is no such address, or its database is none of those the client may see.
    """
    parts = urlsplit(address)
    if parts.scheme != SCHEME or not parts.netloc:
        raise UserError(f"{address!r} is no resource of this server: they look like okf://{databases[0]}/index.md.")
    name = next((each for each in databases if each.lower() == unquote(parts.netloc).lower()), None)
    if name is None:
        near = did_you_mean(unquote(parts.netloc), databases)
        raise UserError(f"There is no database {unquote(parts.netloc)!r} here{near} Served: {', '.join(databases)}.")
    return name, unquote(parts.path) or "/"


def listing(served: Served, databases: Sequence[str], cursor: str | None) -> types.ListResourcesResult:
    """A page of the resources.

    Raises:
        UserError: a bundle cannot be read, or the cursor is none of ours.
    """
    try:
        start = int(cursor or 0)
    except ValueError:
        raise UserError(f"{cursor!r} is no cursor of this server.") from None
    found = [*_all(served, databases)]
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
                name=f"{name}{concept.path}",
                title=concept.title,
                description=concept.description or None,
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


def read(served: Served, databases: Sequence[str], address: str) -> tuple[str, reading.Reading]:
    """The database and the file of an address, as `read_file` gives it.

    Raises:
        UserError: there is none; says what there is.
    """
    name, path = parse(address, databases)
    found = reading.read(served.bundles[name], path + ("#" + urlsplit(address).fragment).removesuffix("#"))
    if found.failed:
        raise UserError(found.text)
    return name, found
