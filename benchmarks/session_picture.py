"""Draw the README's picture: a real session of `okf-agent` in tmux, with a model that plays a script.

    python benchmarks/session_picture.py [FILE]

Writes docs/session.svg. The commands, the PostgreSQL, the bundle and the rows are real; only the model's replies are
given. Figures of time differ from run to run. Needs tmux.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.command import SCRIPTS  # noqa: E402
from support.endpoint import Endpoint, calls, submit  # noqa: E402
from support.tmux import Terminal  # noqa: E402
from support.workspace import ACTIVE, QUESTION, workspace  # noqa: E402

WIDTH = 100
READY = "shop (bundle)>"
BY_CHANNEL = """SELECT channel, count(DISTINCT customer_id) AS active_customers FROM orders
WHERE NOT is_test AND order_state NOT IN ('draft', 'cancelled')
  AND placed_at >= '2025-04-01' AND placed_at < '2025-07-01'
GROUP BY channel ORDER BY 2 DESC"""
FOLLOW_UP = "And by channel?"
CHANNEL = [
    calls(("run_sql", {"sql": BY_CHANNEL})),
    submit(BY_CHANNEL, "Active customers by the channel they ordered in."),
]


def main() -> None:
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "session.svg"
    with tempfile.TemporaryDirectory(prefix="okf-picture-") as folder, workspace(Path(folder)) as work:
        with Endpoint([*ACTIVE, *CHANNEL]) as endpoint:
            work.configure(endpoint.url)
            with Terminal([SCRIPTS / "okf-agent"], work.root, width=WIDTH, height=50) as terminal:
                terminal.wait_for(READY)
                for number, line in enumerate((QUESTION, FOLLOW_UP, "/right"), start=2):
                    terminal.type(line)
                    terminal.wait_for(READY, times=number)
                shown = terminal.screen(styles=True)
        shown = shown.replace(str(work.root) + "/", "").replace("openai/scripted", "a scripted model")
    file.write_text(picture(shown), encoding="utf-8", newline="\n")
    print(f"{file}: {shown.count(chr(10)) + 1} lines")


def picture(shown: str) -> str:
    """The screen as an SVG that loads nothing from elsewhere."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in shown.splitlines():
        console.print(Text.from_ansi(line), soft_wrap=True)
    svg = console.export_svg(title="okf-agent", theme=DIMMED_MONOKAI, unique_id="session")
    return re.sub(r"@font-face\s*\{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    main()
