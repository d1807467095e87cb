"""What clients did: a line of runs.jsonl for each conversation, or each call where there are no conversations.

A conversation begins with its first call and ends with its session. Its steps are written as they happen, so that
the next start closes the record of a server that was killed. All files are written in one thread, in order: a lock
belongs to the thread that took it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from okf_agent.config import TraceSection
from okf_agent.events import Event, StopReason, ToolFinished, ToolStarted
from okf_agent.records import trace
from okf_agent.run import Run
from okf_agent.tools import ToolResult
from okf_compiler.errors import UserError

logger = logging.getLogger(__name__)
STOP_SECONDS = 5.0
"""How long the end of stopped work is waited for; what goes on after that (a model's reply) ends on its own."""
STOP_PAUSE = 0.05
REMEMBERED = 1000
"""Conversations that ended for their silence and are still known, so that the next record can name the one before."""
FLUSH_SECONDS = 0.05
MODE = "mcp"
"""How knowledge reached the client's model: it fetched what it wanted, so no mode of ours is meant."""


@dataclass
class Conversation:
    """What is known of one conversation; only the writing thread changes `recorder`."""

    client: str
    recorder: trace.Recorder | None = None
    databases: list[str] = field(default_factory=list)
    """Those it has used."""
    step: int = 0
    running: int = 0
    """Calls under way."""
    cut: bool = False
    """Its last call did not end by itself."""
    ended: bool = False
    """Its line is written; what a late call gave is in no record."""
    began: float = field(default_factory=time.monotonic)
    last: float = field(default_factory=time.monotonic)


class Records:
    """The records of one server. Used from its event loop."""

    def __init__(self, runs: Path, settings: TraceSection, bundle_hash: Callable[[str], str]) -> None:
        """`bundle_hash` gives that of a database's bundle."""
        self._runs = runs
        self._settings = settings
        self._bundle_hash = bundle_hash
        self._versions = trace.versions()
        self._waiting: list[tuple[Conversation, Event]] = []
        """Events on their way to the writing thread: in a heap, since each time it wakes the loop may have to wait."""
        self._open: dict[str, Conversation] = {}
        self._last: OrderedDict[str, str] = OrderedDict()
        """The run_id of conversations that were ended for their silence, in case one goes on."""
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="records")

    async def begin(self, key: str, client: str, database: str | None) -> Conversation:
        """Return the conversation with this key, which may be new, with a call that begins.

        Raises:
            UserError: the folder of the records cannot be written to; nothing has been done yet.
        """
        conversation = self._open.get(key)
        if conversation is None:
            conversation = self._open[key] = Conversation(client)
        conversation.running += 1
        if conversation.recorder is not None and (database is None or database in conversation.databases):
            return conversation
        try:
            await self._in_writer(self._prepare, conversation, database, self._last.pop(key, None))
        except BaseException:
            conversation.running -= 1
            if conversation.recorder is None and not conversation.running:
                self._open.pop(key, None)
            raise
        return conversation

    def started(self, conversation: Conversation, name: str, arguments: Mapping[str, Any]) -> int:
        """Keep that a call begins; return its step."""
        conversation.step += 1
        self._keep(conversation, ToolStarted(conversation.step, name, dict(arguments)))
        return conversation.step

    def finished(
        self, conversation: Conversation, step: int, name: str, result: ToolResult | None, *, cut: bool
    ) -> None:
        """Keep what a call gave; None where nobody waited for it any more. `cut`: it did not end by itself."""
        conversation.running -= 1
        conversation.last = time.monotonic()
        cancelled = ToolFinished(step, name, "(cancelled)", failed=True)
        event = result.finished(step, name) if result else cancelled
        conversation.cut = cut
        self._keep(conversation, event)

    async def end(self, key: str, *, goes_on: bool = False) -> None:
        """Write the line of a conversation, if there is one; `goes_on`: another call may still come."""
        conversation = self._open.pop(key, None)
        if conversation is None or conversation.recorder is None:
            return
        if goes_on:
            self._last[key] = conversation.recorder.header.run_id
            if len(self._last) > REMEMBERED:
                self._last.popitem(last=False)
        else:
            self._last.pop(key, None)
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(STOP_SECONDS):
                while conversation.running:  # calls whose session is over are being stopped
                    await anyio.sleep(STOP_PAUSE)
            self._flush()
            await self._in_writer(_finish, conversation)

    async def end_idle(self, seconds: float) -> None:
        """End the conversations without a call for so many seconds."""
        oldest = time.monotonic() - seconds
        for key, conversation in [*self._open.items()]:
            if not conversation.running and conversation.last < oldest:
                await self.end(key, goes_on=True)

    async def end_all(self) -> None:
        async with anyio.create_task_group() as tasks:
            for key in [*self._open]:
                tasks.start_soon(self.end, key)

    def close(self) -> None:
        """Wait until all is written."""
        self._flush()
        self._writer.shutdown(wait=True)

    async def _in_writer(self, work: Callable[..., None], *arguments: Any) -> None:
        await asyncio.get_running_loop().run_in_executor(self._writer, work, *arguments)

    def _keep(self, conversation: Conversation, event: Event) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flush)
        self._waiting.append((conversation, event))

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._writer.submit(_write, waiting)

    def _prepare(self, conversation: Conversation, database: str | None, follows: str | None) -> None:
        """Open the record of a conversation, or name a further database that it uses."""
        if database is not None and database not in conversation.databases:
            conversation.databases.append(database)
        names = ", ".join(conversation.databases)
        read = None
        if len(conversation.databases) == 1:
            with suppress(UserError):  # a bundle that is gone for a moment stops no query
                read = self._bundle_hash(names)
        if conversation.recorder is None:
            header = trace.Header(
                names, "", "", MODE,
                follows=follows, bundle_hash=read, client=conversation.client, versions=self._versions,
            )  # fmt: skip
            conversation.recorder = trace.Recorder(self._runs, header, self._settings)
        else:
            conversation.recorder.update(database=names, bundle_hash=read)


def _write(events: Sequence[tuple[Conversation, Event]]) -> None:
    for conversation, event in events:
        if conversation.recorder is not None and not conversation.ended:
            conversation.recorder.on_event(event)


def _finish(conversation: Conversation) -> None:
    assert conversation.recorder is not None
    conversation.ended = True
    # No answer was handed in: the client kept it. Either it called no more tools, or it was stopped in a call.
    reason: StopReason = "interrupted" if conversation.running or conversation.cut else "no_tool_calls"
    seconds = (time.monotonic() if conversation.running else conversation.last) - conversation.began
    try:
        conversation.recorder.finish(Run(reason, conversation.recorder.tally, seconds=seconds))
    except UserError as error:
        logger.error("%s", error)
