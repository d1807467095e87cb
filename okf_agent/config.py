"""config.yaml as the agent reads it, and secrets from `.env` or the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dotenv import dotenv_values

from okf_compiler.settings import (
    CONFIG_FILE,
    Section,
    Settings,
    UserError,
    did_you_mean,
    find_root,
    load_settings,
    read_config,
    read_section,
)


class Price(Section):
    """`model.prices.<name>:` dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Of input tokens that the provider had cached; None: the same as `input`."""


class ModelSection(Section):
    """`model:` which model answers, and how it is called."""

    name: str = "nvidia_nim/nvidia/nemotron-3-super-120b-a12b"
    """A LiteLLM model name, or `local` for the embedded model."""
    api_base: str | None = None
    """The address of an OpenAI-compatible server of your own; None for the provider's."""
    temperature: float = 0.0
    max_tokens: int = 4096
    """Tokens of one reply."""
    timeout_s: float = 120
    """Seconds one model call may take."""
    stream: bool = False
    """Take replies as they are written: then `timeout_s` bounds the silence, and the run's seconds the reply."""
    callbacks: tuple[str, ...] = ()
    """LiteLLM callbacks by name: langfuse, langsmith, otel, …"""
    retries: int = 5
    """Further tries of a call that failed for a passing reason: a rate limit, a server out of order."""
    retry_wait_s: float = 5
    """Seconds before the first further try, doubled for each one after it, unless the provider names a time."""
    prices: dict[str, Price] = {}  # noqa: RUF012 - pydantic copies it
    """Prices of models that LiteLLM does not know, by model name; they win over LiteLLM's."""


class AgentSection(Section):
    """`agent:` where knowledge comes from, how far one question may go, where records are kept."""

    bundles: Path = Path("bundles/compiled")
    """Folder of the compiled bundles, one a database."""
    raw_docs: Path | tuple[Path, ...] = Path("data/livesqlbench-base-lite")
    """Data root, or a list of them; `data/` is always the last one."""
    max_steps: int = 15
    """Model calls of one question."""
    max_seconds: float = 600
    """Seconds one question may take, waiting for rate limits included."""
    max_tokens: int = 1_000_000
    """Tokens, input and output together, that one question may use."""
    max_cost_usd: float = 1.0
    """Dollars one question may cost, as far as prices are known."""
    runs: Path = Path("runs")
    """Folder of the records."""


class TraceSection(Section):
    """`trace:` what the steps files keep. They hold rows of the database; their file mode is 600."""

    rows: Literal["full", "sample", "none"] = "full"
    """Query results in the steps file: whole as the model saw them, their first lines, or none."""
    keep_days: float = 90
    """Days after which a steps file is deleted; 0 keeps them for ever. runs.jsonl is never cut."""


@dataclass(frozen=True)
class Config:
    """Everything config.yaml says, validated."""

    settings: Settings
    model: ModelSection
    agent: AgentSection
    trace: TraceSection

    @property
    def runs(self) -> Path:
        """The folder of the records."""
        return self.settings.root / self.agent.runs


SECTIONS = ("model", "agent", "database", "databases", "trace")


def load_config(root: Path | None = None) -> Config:
    """The workspace's config.yaml (default: found from the current folder), with `.env` in the environment.

    A variable that the environment already has is kept.

    Raises:
        UserError: a broken file, or an unknown section or key; names the nearest real one.
    """
    root = root or find_root()
    file = root / CONFIG_FILE
    sections: Mapping[str, Any] = read_config(file)
    for name in sections:
        if name not in SECTIONS:
            raise UserError(f"{file}: there is no section {name!r}{did_you_mean(name, SECTIONS)}", status=2)
    load_env(root / ".env")
    return Config(
        settings=load_settings(root, sections),
        model=read_section(ModelSection, sections.get("model", {}), "model", file),
        agent=read_section(AgentSection, sections.get("agent", {}), "agent", file),
        trace=read_section(TraceSection, sections.get("trace", {}), "trace", file),
    )


def load_env(path: Path) -> None:
    """Put the variables of a `.env` file into the environment, where it does not have them yet."""
    for name, value in dotenv_values(path, encoding="utf-8-sig", interpolate=False).items():
        if value:
            os.environ.setdefault(name, value)
