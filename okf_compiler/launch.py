"""Start a command line, once it is sure that `okf_agent` is ours.

PyPI has an unrelated `okf-agent` whose module is called `okf_agent` too. Installed into the same environment
it overwrites files of ours, so the check cannot live in that package. It names the agent but imports
nothing of it before the check.
"""

from __future__ import annotations

import importlib
import sys

from okf_compiler.console import run

DISTRIBUTION = "okf-sql-agent"


def foreign_agent() -> str | None:
    """What is wrong with the `okf_agent` that Python finds, and the remedy; None if it is ours."""
    try:
        package = importlib.import_module("okf_agent")
    except Exception as error:
        return f"okf_agent cannot be imported ({error}). Install it again: pip install --force-reinstall {DISTRIBUTION}"
    if getattr(package, "DISTRIBUTION", None) == DISTRIBUTION:
        return None
    return (
        f"Another package's okf_agent module is in the way: {getattr(package, '__file__', None)}\n"
        f"PyPI's okf-agent is a different project. Remove it and install ours again:\n"
        f"  pip uninstall okf-agent && pip install --force-reinstall {DISTRIBUTION}\n"
        f"or take its folder out of PYTHONPATH and the current folder."
    )


def agent() -> None:
    """The command `okf-agent`."""
    problem = foreign_agent()
    if problem:
        print(f"okf-agent: {problem}", file=sys.stderr)
        raise SystemExit(1)
    run(importlib.import_module("okf_agent.commands.cli").commands)


def compiler() -> None:
    """The command `okf-compiler`, which works without the agent and warns of a foreign one."""
    problem = foreign_agent()
    if problem:
        print(f"okf-compiler: warning: {problem}", file=sys.stderr)
    run(importlib.import_module("okf_compiler.cli").commands)
