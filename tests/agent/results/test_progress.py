"""What shows that a run lives, where no terminal is."""

from __future__ import annotations

import io
import time

import pytest

from okf_agent.events import StepStarted
from okf_agent.results import terminal
from okf_compiler.terminal import Console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_spinner_counts_seconds() -> None:
    written = Terminal()
    with terminal.Progress(Console(written)) as progress:
        progress(StepStarted(step=3))
        end = time.monotonic() + 10
        while "step 3: the model is thinking (1 s)" not in written.getvalue():
            assert time.monotonic() < end
            time.sleep(0.05)


@pytest.mark.parametrize(("quiet", "expected"), [(False, "step 3: the model is thinking (0 s so far)"), (True, "")])
def test_a_slow_model_shows_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, quiet: bool, expected: str) -> None:
    monkeypatch.setattr(terminal, "SIGN_OF_LIFE_S", 0.02)
    written = io.StringIO()
    with terminal.Progress(Console(written), quiet=quiet) as progress:
        progress(StepStarted(step=3))
        end = time.monotonic() + (5 if expected else 0.2)
        while written.getvalue().count("\n") < 2 and time.monotonic() < end:
            time.sleep(0.01)
    lines = written.getvalue().splitlines()
    assert lines[:2] == [expected] * 2 if expected else lines == []
    time.sleep(0.1)
    assert written.getvalue().splitlines() == lines  # nothing after the end
