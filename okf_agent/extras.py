"""What an extra of the package brings, looked for where it is needed first."""

from __future__ import annotations

import importlib.util

from okf_compiler.errors import UserError


def need(what: str, extra: str, *modules: str) -> None:
    """Refuse `what` where one of its modules is not installed. Each is looked for: some come with other packages too.

    Raises:
        UserError: one is missing; names it, and how to get it.
    """
    if missing := [name for name in modules if importlib.util.find_spec(name) is None]:
        raise UserError(
            f"{what} needs {' and '.join(missing)}, which the extra `{extra}` brings: "
            f"pip install 'okf-sql-agent[{extra}]' (in a checkout: uv sync --extra {extra}).",
            status=2,
        )
