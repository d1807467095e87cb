"""What clients ask for, request by request; how each is done is in work.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult

from okf_agent import prompts
from okf_agent.cell import Cell
from okf_agent.mcp_server import completions, resources
from okf_agent.mcp_server import prompts as mcp_prompts
from okf_agent.mcp_server.calls import ClientGone
from okf_agent.mcp_server.changes import Changes
from okf_agent.mcp_server.clients import Client, Clients, Ctx, has_handshake
from okf_agent.mcp_server.errors import ClientError, for_client
from okf_agent.mcp_server.records import Records
from okf_agent.mcp_server.served import Served, Stop
from okf_agent.mcp_server.tokens import Tokens
from okf_agent.mcp_server.tools import Call, Progress, Tools
from okf_agent.mcp_server.work import Work, Worker
from okf_agent.models.arguments import printable
from okf_agent.prompts import framing
from okf_agent.tools import ToolResult
from okf_compiler.errors import UserError
from okf_compiler.tokens import tokens

T = TypeVar("T")
NOT_FOUND = -32002
"""The protocol's code for a resource that is not there, before 2026-07-28."""


class Service:
    """The handlers, and what they share. `server.build` gives the SDK's server for it."""

    def __init__(self, served: Served, cell: Cell | None = None, access: Tokens | None = None) -> None:
        """`cell` is how `ask` asks; without one the tool is not offered."""
        self.served = served
        self.config = served.config
        self.access = access or Tokens()
        self.records = Records(self.config.runs, self.config.trace, served.bundle_hash)
        self.clients = Clients(self.access, served.names)
        self.tools = Tools(served, cell)
        self.worker = Worker(self.config.mcp, self.access, self.records, with_ask=cell is not None)
        self.changes = Changes(served, self.records, self.config.mcp)

    async def stop_calls(self) -> None:
        """Begin no more calls, and stop those that run; see `Worker.stop`."""
        self.changes.listen.close()
        await self.worker.stop()

    async def end_conversation(self, key: str) -> None:
        """A conversation is over: forget it, and write its record."""
        self.changes.forget(key)
        await self.records.end(key)

    def close(self) -> None:
        """Write what is left to write, and close the connections."""
        self.records.close()
        self.served.close()

    async def observe(self, ctx: Ctx, call_next: CallNext) -> HandlerResult:
        """Middleware: instructions for what this client may see, and whom to tell of changes."""
        result = await call_next(ctx)
        client = self.clients.of(ctx)
        if ctx.method in ("initialize", "server/discover") and isinstance(result, dict):
            text = await anyio.to_thread.run_sync(self.instructions, client.databases)
            return {**result, "instructions": text}
        if client.conversation is not None and has_handshake(ctx):
            self.changes.tell(client.conversation, ctx.session)
        return result

    def instructions(self, databases: tuple[str, ...]) -> str:
        """What a client's model is told first, with the root indexes that fit."""
        left = self.config.mcp.instructions_tokens
        indexes = []
        for name in databases:
            text = self.served.index(name)
            index = prompts.load("mcp/index.md", database=name, index=framing.beneath(text))
            left -= tokens(index)
            if text and left >= 0:
                indexes.append(index)
        missing = "" if len(indexes) == len(databases) else "\nRead /index.md of a database with read_file first."
        return prompts.load("mcp/instructions.md", databases=", ".join(databases), indexes="".join(indexes) + missing)

    async def list_tools(self, ctx: Ctx, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self.tools.listing(self.clients.of(ctx).databases))

    async def call_tool(self, ctx: Ctx, params: types.CallToolRequestParams) -> types.CallToolResult:
        client = self.clients.of(ctx)
        name, arguments = params.name, params.arguments or {}

        def run(stop: Stop, progress: Progress) -> ToolResult:
            return self.tools.run(Call(name, arguments, client.databases, client.label, stop, progress))

        database = self.tools.database_of(name, arguments, client.databases)
        work = Work(name, arguments, database, run, self.tools.needs(name))
        result = await self.worker.do(ctx.session, client, work)
        text = printable(framing.unmarked(result.text))
        return types.CallToolResult(
            content=[types.TextContent(text=text)],
            structured_content=dict(result.data) or {"text": text},
            is_error=result.failed,
        )

    async def list_resources(self, ctx: Ctx, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        cursor = params.cursor if params else None
        return await self._look(ctx, lambda client: resources.listing(self.served, client.databases, cursor))

    async def list_templates(
        self, _ctx: Ctx, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return resources.templates()

    async def read_resource(self, ctx: Ctx, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        client = self.clients.of(ctx)
        address = str(params.uri)
        try:
            database, _ = resources.parse(address, client.databases)
        except ClientError as error:
            raise _not_found(ctx, str(error)) from None

        def read(_stop: Stop, _progress: Progress) -> ToolResult:
            try:
                found = resources.read(self.served, client.databases, address)
            except UserError as error:
                return ToolResult(for_client(error), failed=True, failed_reads=1)
            return ToolResult(found.text, files=(found.path,))

        result = await self.worker.do(ctx.session, client, Work("read_resource", {"uri": address}, database, read))
        if result.failed:
            raise _not_found(ctx, result.text)
        content = types.TextResourceContents(uri=address, mime_type=resources.MARKDOWN, text=result.text)
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(self, _ctx: Ctx, _params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return mcp_prompts.listing()

    async def get_prompt(self, ctx: Ctx, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        arguments = params.arguments or {}
        return await self._look(
            ctx, lambda client: mcp_prompts.get(self.served, client.databases, params.name, arguments)
        )

    async def complete(self, ctx: Ctx, params: types.CompleteRequestParams) -> types.CompleteResult:
        return await self._look(ctx, lambda client: completions.complete(self.served, client.databases, params))

    async def _look(self, ctx: Ctx, work: Callable[[Client], T]) -> T:
        """What `work` finds in the bundles for this client; a protocol error where it finds nothing."""
        client = self.clients.of(ctx)
        try:
            return await self.worker.look(client, lambda: work(client))
        except UserError as error:
            code = types.INVALID_PARAMS if isinstance(error, ClientError) else types.INTERNAL_ERROR
            raise MCPError(code, framing.inside(for_client(error))) from None
        except ClientGone:
            raise MCPError(types.INTERNAL_ERROR, "The client has left.") from None


def _not_found(ctx: Ctx, text: str) -> MCPError:
    return MCPError(NOT_FOUND if has_handshake(ctx) else types.INVALID_PARAMS, framing.inside(text))
