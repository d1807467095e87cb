"""Every concept of every bundle as a resource: `okf://<database>/<path>`, with its title and description."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import quote as escaped
from urllib.parse import unquote, urlsplit

import mcp_types as types
from mcp import MCPError

from okf_agent.bundles import reading
from okf_agent.mcp_server.calls import Call, Calls, Client, Ctx, Progress, has_handshake
from okf_agent.mcp_server.databases import ClientError, Databases, Stop, for_client, one_of
from okf_agent.models.arguments import quote
from okf_agent.prompts import framing
from okf_agent.tools import ToolResult
from okf_compiler.errors import UserError

SCHEME = "okf"
MARKDOWN = "text/markdown"
NOT_FOUND = -32002
"""The protocol's code for a resource that is not there, before 2026-07-28."""
PAGE = 200
"""Resources in one answer; a longer list goes on in the next."""
TEMPLATES = (
    ("okf://{database}/tables/{table}.md", "table", "A table: its columns, keys and meanings."),
    ("okf://{database}/knowledge/{rule}.md", "rule", "A business rule."),
    ("okf://{database}/{+path}", "file", "Any file or folder index of a bundle."),
)


class Resources:
    """The resources of one server."""

    def __init__(self, databases: Databases, calls: Calls) -> None:
        self._databases = databases
        self._calls = calls

    async def list(self, ctx: Ctx, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """Answer `resources/list`."""
        cursor = params.cursor if params else None

        def look(client: Client) -> types.ListResourcesResult:
            return listing(self._databases, client.databases, cursor)

        return await self._calls.look(ctx, look)

    async def templates(
        self, _ctx: Ctx, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Answer `resources/templates/list`."""
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(uri_template=form, name=name, description=text, mime_type=MARKDOWN)
                for form, name, text in TEMPLATES
            ]
        )

    async def read(self, ctx: Ctx, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Answer `resources/read`."""
        seen = self._calls.client(ctx).databases
        address = str(params.uri)
        try:
            database, _ = parse(address, seen)
        except ClientError as error:
            raise _not_found(ctx, str(error)) from None

        def work(_stop: Stop, _progress: Progress) -> ToolResult:
            try:
                found = read(self._databases, seen, address)
            except UserError as error:
                return ToolResult(for_client(error), failed=True, failed_reads=1)
            return ToolResult(found.text, files=(found.path,))

        result = await self._calls.do(ctx, Call("read_resource", {"uri": address}, database), work)
        if result.failed:
            raise _not_found(ctx, result.text)
        content = types.TextResourceContents(uri=address, mime_type=MARKDOWN, text=result.text)
        return types.ReadResourceResult(contents=[content])


def _not_found(ctx: Ctx, text: str) -> MCPError:
    return MCPError(NOT_FOUND if has_handshake(ctx) else types.INVALID_PARAMS, framing.inside(text))


def uri(database: str, path: str) -> str:
    """Return the address of a bundle path such as `/tables/orders.md`."""
    return f"{SCHEME}://{escaped(database, safe='')}/{escaped(path.lstrip('/'))}"


def parse(address: str, databases: Sequence[str]) -> tuple[str, str]:
    """Return the database and the bundle path of an address.

    Raises:
        ClientError: `address` is none of ours, or its database is none of those the client may see.
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


def listing(databases: Databases, seen: Sequence[str], cursor: str | None) -> types.ListResourcesResult:
    """Return a page of the resources.

    Raises:
        ClientError: the cursor is none of ours.
        UserError: a bundle cannot be read.
    """
    found = [*_all(databases, seen)]
    starts = {str(start): start for start in range(0, max(1, len(found)), PAGE)}
    start = starts.get(cursor or "0")
    if start is None:
        raise ClientError(f"{quote(repr(cursor))} is no cursor of this server. Begin again without one.")
    end = start + PAGE
    return types.ListResourcesResult(resources=found[start:end], next_cursor=str(end) if end < len(found) else None)


def _all(databases: Databases, seen: Sequence[str]) -> Iterator[types.Resource]:
    for name in seen:
        yield types.Resource(
            uri=uri(name, "/index.md"),
            name=f"{name}/index.md",
            title=f"{name}: index",
            description=f"What the bundle of {name} has.",
            mime_type=MARKDOWN,
        )
        for concept in databases.concepts(name).values():
            yield types.Resource(
                uri=uri(name, concept.path),
                name=framing.one_line(f"{name}{concept.path}"),
                title=framing.one_line(concept.title),
                description=framing.one_line(concept.description) or None,
                mime_type=MARKDOWN,
            )


def read(databases: Databases, seen: Sequence[str], address: str) -> reading.Reading:
    """Return the file of an address, as `read_file` gives it, without what was measured.

    Raises:
        ClientError: there is none; says what there is.
    """
    name, path = parse(address, seen)
    found = reading.read(databases.bundles[name], path + ("#" + urlsplit(address).fragment).removesuffix("#"))
    if found.failed:
        raise ClientError(found.text)
    return replace(found, text=framing.beneath(found.text))
