"""A real terminal: a program in tmux, typed to and read from, as a person does."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from okf_agent.models.providers import PROVIDERS


def missing() -> bool:
    return shutil.which("tmux") is None


class Terminal:
    """`width` x `height` cells. Use it in a `with`: the program is gone at the end."""

    def __init__(
        self,
        command: Sequence[str | Path],
        cwd: Path,
        *,
        width: int = 80,
        height: int = 40,
        env: Mapping[str, str] = {},
    ) -> None:  # fmt: skip
        self._folder = tempfile.TemporaryDirectory(prefix="okf-tmux-")
        self._command = shlex.join(map(str, command))
        self._cwd = cwd
        self._size = (str(width), str(height))
        keys = {p.key for p in PROVIDERS}
        clean = {
            name: value for name, value in os.environ.items() if name not in keys and name not in ("TMUX", "COLUMNS")
        }
        self._env = clean | {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", **(env or {})}

    def __enter__(self) -> Terminal:
        width, height = self._size
        (Path(self._folder.name) / "tmux.conf").write_text(
            "set -g history-limit 5000\nset -g remain-on-exit on\nset -g status off\nset -sg escape-time 0\n"
            "set -g default-terminal tmux-256color\n",
            encoding="utf-8",
        )
        self._tmux("new-session", "-d", "-x", width, "-y", height, "-c", str(self._cwd), self._command)
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server")
        self._folder.cleanup()

    def type(self, text: str, enter: bool = True) -> None:
        self._tmux("send-keys", "-l", "--", text)
        if enter:
            self.press("Enter")

    def press(self, *keys: str) -> None:
        """Keys by tmux's names: Enter, C-c, M-Enter, Up, Tab."""
        self._tmux("send-keys", *keys)

    def screen(self, *, styles: bool = False) -> str:
        """Everything that was shown, what has scrolled away too; with escape sequences if `styles`."""
        return self._tmux("capture-pane", "-p", "-S", "-", *(["-e"] if styles else [])).rstrip("\n")

    def wait_for(self, text: str, *, times: int = 1, seconds: float = 150) -> str:
        """The screen, once it has the text so many times.

        Raises:
            AssertionError: it never has.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            shown = self.screen()
            if shown.count(text) >= times:
                return shown
            time.sleep(0.1)
        raise AssertionError(f"{text!r} is not there {times} times:\n{self.screen()}")

    def alive(self) -> bool:
        return self._tmux("display-message", "-p", "#{pane_dead}").strip() == "0"

    def _tmux(self, *arguments: str) -> str:
        folder = Path(self._folder.name)
        done = subprocess.run(
            ["tmux", "-S", str(folder / "socket"), "-f", str(folder / "tmux.conf"), *arguments],
            env=self._env,
            capture_output=True,
            encoding="utf-8",
            check=True,
            timeout=30,
        )
        return done.stdout
