"""What can be completed: names of databases, tasks, models and bundle paths, in a shell and at the prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from okf_agent.cell import KNOWLEDGE
from okf_agent.config import Config, load_config
from okf_agent.models.providers import LOCAL, PROVIDERS
from okf_agent.tasks import list_tasks
from okf_compiler import bundle as bundles
from okf_compiler.documents import list_databases
from okf_compiler.errors import UserError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def names(
    kind: str, typed: str, file: Path | None, changes: Sequence[str], *, database: str | None
) -> list[CompletionItem]:
    """Names of a kind that begin with what was typed; none where the configuration is broken."""
    from click.shell_completion import CompletionItem

    try:
        known = [*known_names(kind, load_config(file=file, changes=changes), database)]
    except (UserError, OSError):
        return []
    return [CompletionItem(name) for name in known if name.startswith(typed)]


def known_names(kind: str, config: Config, database: str | None = None) -> Iterable[str]:
    """All names of a kind: databases, tasks, models, knowledge modes, or paths in the compiled bundle of a database."""
    if kind == "databases":
        return list_databases(config.settings)
    if kind == "knowledge":
        return KNOWLEDGE
    if kind == "tasks":
        return list_tasks(config.settings)
    if kind == "models":
        return [LOCAL, config.model.name, *(p.example for p in PROVIDERS if "<" not in p.example)]
    folder = config.settings.bundles / (database or "")
    return ["/" + path for path in bundles.files(folder) if path.endswith(".md")] if database else []
