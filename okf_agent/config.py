"""config.yaml as the agent reads it, and secrets from `.env` or the environment."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv.parser import parse_stream
from pydantic import AfterValidator, Field

from okf_agent.cell import check_knowledge
from okf_compiler.console import tell
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.settings import (
    Positive,
    Seconds,
    Section,
    Settings,
    load_settings,
    place_of,
    read_config,
    read_section,
    utf8_text,
)
from okf_compiler.workspace_config import changed, find_config, origin_of

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Limit = Annotated[float, Field(gt=0)]
"""Infinite for none: .inf"""


class Price(Section):
    """`model.prices.<name>:` dollars per million tokens."""

    input: Amount
    output: Amount
    cached: Amount | None = None
    """Of input tokens that the provider had cached; None: the same as `input`."""


class ModelSection(Section):
    """`model:` which model answers, and how it is called."""

    name: str = "nvidia_nim/nvidia/nemotron-3-super-120b-a12b"
    """A LiteLLM model name, or `local` for the embedded model."""
    api_base: str | None = None
    """The address of an OpenAI-compatible server of your own; None for the provider's."""
    temperature: Amount = 0.0
    max_tokens: Positive = 4096
    """Tokens of one reply."""
    timeout_s: Seconds = 120
    """Seconds one model call may take."""
    stream: bool = False
    """Take replies as they are written: then `timeout_s` bounds each silence, and the run's seconds the reply."""
    callbacks: tuple[str, ...] = ()
    """LiteLLM callbacks by name: langfuse, langsmith, otel, …"""
    retries: Annotated[int, Field(ge=0)] = 5
    """Further tries of a call that failed for a passing reason: a rate limit, a server out of order."""
    retry_wait_s: Amount = 5
    """Seconds before the first further try, doubled for each one after it, unless the provider names a time."""
    prices: dict[str, Price] = {}  # noqa: RUF012 - pydantic copies it
    """Prices of models that LiteLLM does not know, by model name; they win over LiteLLM's."""


def _known_knowledge(name: str) -> str:
    try:
        check_knowledge(name)
    except UserError as error:
        raise ValueError(str(error)) from None
    return name


class AgentSection(Section):
    """`agent:` where knowledge comes from, how far one question may go, where records are kept."""

    # `bundles` and `raw_docs` are the compiler's too, which reads them (`Settings`): here they are known and told of.
    bundles: Path = Path("bundles/compiled")
    """Folder of the compiled bundles, one a database."""
    raw_docs: Path | tuple[Path, ...] = Path("data/livesqlbench-base-lite")
    """Data root, or a list of them; `data/` is always the last one."""
    max_steps: Positive = 15
    """Model calls of one question."""
    max_seconds: Limit = 600
    """Seconds one question may take, waiting for rate limits included."""
    max_tokens: Positive = 1_000_000
    """Tokens, input and output together, that one question may use."""
    max_cost_usd: Annotated[float, Field(ge=0)] = 1.0
    """Dollars one question may cost, as far as prices are known."""
    runs: Path = Path("runs")
    """Folder of the records."""
    knowledge: Annotated[str, AfterValidator(_known_knowledge)] = "bundle"
    """How knowledge reaches the model: a name in `okf_agent.cell.KNOWLEDGE`. The embedded model always takes pack."""
    signposts: bool = True
    """Name the paths that match the question beside it, where the model can read the bundle."""
    pack_tokens: Positive = 12_000
    """Tokens that a pack takes at most, about; the embedded model has a smaller limit of its own."""
    today: date | None = None
    """The date that models are told in place of today's: the same questions then get the same prompts on any day."""
    find_value: bool = False
    """Give the model the tool find_value, which says in which columns a value occurs; it needs a profile."""


class TraceSection(Section):
    """`trace:` what the steps files keep. They hold rows of the database; their file mode is 600."""

    rows: Literal["full", "sample", "none"] = "full"
    """Query results in the steps file: whole as the model saw them, their first lines, or none."""
    keep_days: Amount = 90
    """A steps file is deleted once one of an earlier day is so many days newer; 0 keeps them for ever. runs.jsonl is
    never cut."""


class TokenSection(Section):
    """`mcp.tokens.<name>:` what the holder of one bearer token may do; the token itself is never in this file."""

    databases: tuple[str, ...] = ()
    """The databases it sees; empty: all that are served."""


class McpSection(Section):
    """`mcp:` what `okf-agent mcp` serves. The limits on calls, rows and seconds hold for each token, in one server."""

    databases: tuple[str, ...] = ()
    """What is served; empty: every database that has a bundle, or the only one there is."""
    instructions_tokens: Positive = 4000
    """Tokens of the root indexes that go into the server's instructions; an index that does not fit is left out."""
    connections: Annotated[int, Field(ge=2)] = 20
    """Connections to PostgreSQL that all clients share; `database.connection_limit` has to be larger."""
    session_idle_s: Seconds = 1800
    """Seconds after which an HTTP session without a call ends, and its record is written."""
    max_sessions: Positive = 1000
    """HTTP sessions that may be open at once; where there are several tokens, no more for one than are left free."""
    max_clients: Positive = 1000
    """HTTP requests that may be under way at once; one more is answered with 503."""
    max_request_bytes: Positive = 1_000_000
    """Bytes of one HTTP request; a larger one is refused before it is read."""
    request_timeout_s: Seconds = 30
    """Seconds in which a request has to arrive, and in which a client has to take each piece of the answer."""
    allowed_hosts: tuple[str, ...] = ()
    """Names in the Host header that are served beside this machine's own (`localhost`) and the address listened on."""
    allowed_origins: tuple[str, ...] = ()
    """Web pages (`https://tool.example`) that may call, beside those of this machine."""
    calls_per_minute: Positive = 600
    rows_per_hour: Positive = 100_000
    """Rows that `run_sql` shows."""
    seconds_per_hour: Seconds = 3600
    """Seconds of calls, those under way included."""
    tokens: dict[str, TokenSection] = {}  # noqa: RUF012 - pydantic copies it
    """What tokens may see, by their names in `OKF_MCP_TOKENS` or the file of `--tokens`."""


@dataclass(frozen=True)
class Config:
    """Everything config.yaml says, validated."""

    settings: Settings
    model: ModelSection
    agent: AgentSection
    trace: TraceSection
    mcp: McpSection
    cells: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """`cells:` what an evaluation compares, by name: `pack: {knowledge: pack, rules: false}`; see okf_agent.cell."""

    @property
    def runs(self) -> Path:
        """The folder of the records."""
        return self.settings.root / self.agent.runs


SECTIONS = ("model", "agent", "database", "databases", "trace", "mcp", "cells")


def load_config(root: Path | None = None, *, file: Path | None = None, changes: Sequence[str] = ()) -> Config:
    """The workspace's config.yaml (default: found from the current folder), with `.env` in the environment.

    `file` is read instead, and its folder is the workspace. `changes` are single keys that win over the file, each
    `agent.max_steps=20`, its value in YAML. A variable that the environment already has is kept.

    Raises:
        UserError: a broken file, or an unknown section or key; names its line and the nearest real one.
    """
    root, file = find_config(file, root)
    sections = read_config(file)
    for name in sections:
        if name not in SECTIONS:
            place = place_of(file, (name,))
            raise UserError(f"{place}: there is no section {name!r}{did_you_mean(name, SECTIONS)}", status=2)
    load_env(root / ".env")
    config = _validated(root, sections, file)
    # Changes together: a price has two keys, and neither is whole without the other.
    return _validated(root, changed(sections, changes, SECTIONS), origin_of(changes)) if changes else config


def _validated(root: Path, sections: Mapping[str, Any], origin: Path | str) -> Config:
    return Config(
        model=read_section(ModelSection, sections.get("model", {}), "model", origin),
        agent=read_section(AgentSection, sections.get("agent", {}), "agent", origin),
        trace=read_section(TraceSection, sections.get("trace", {}), "trace", origin),
        mcp=read_section(McpSection, sections.get("mcp", {}), "mcp", origin),
        settings=load_settings(root, sections, origin),
        cells=_cells(sections.get("cells", {}), origin),
    )


def _cells(section: Mapping[str, Any], origin: Path | str) -> dict[str, Mapping[str, Any]]:
    """The cells by name, each a mapping; what is in it is checked where it is used.

    Raises:
        UserError: one is no mapping.
    """
    for name, values in section.items():
        if not isinstance(values, Mapping | None):
            place = place_of(origin, ("cells", str(name)))
            raise UserError(f"{place}: cells.{name}: a mapping, such as {{knowledge: pack, rules: false}}", status=2)
    return {str(name): values or {} for name, values in section.items()}


def load_env(path: Path) -> None:
    """Put the variables of a `.env` file into the environment, where it does not have them yet.

    A line that cannot be read is left out, and named on standard error; what is in it may be a secret.

    Raises:
        UserError: the file is there and cannot be read, or is not UTF-8.
    """
    text = utf8_text(path, (FileNotFoundError, NotADirectoryError, IsADirectoryError))
    if text is None:
        return
    values = {}
    for found in parse_stream(io.StringIO(text)):
        if found.error or "\0" in found.original.string:
            tell(f"{path}:{found.original.line}: this line is left out: write it as NAME=value, a value with spaces or "
                 "quotes in quotes, or put # before it.")  # fmt: skip
        elif found.key and found.value:
            values[found.key] = found.value
    for name, value in values.items():
        os.environ.setdefault(name, value)
