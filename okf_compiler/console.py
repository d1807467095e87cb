"""How both command lines begin and end: streams that drive no terminal, one message for an error, an exit status."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO, cast

import click

from okf_compiler.errors import UserError
from okf_compiler.inert import inert_lines

_WORD_WITH_AT = re.compile(r"(?<!\S)(\S*)@")
_UP_TO_PASSWORD = re.compile(r"(?<![a-z0-9+.-])[a-z0-9+.-]+:/{1,2}[^\s/:@]*:", re.IGNORECASE)
"""What stands before the password of a URL; one that passed for a path has lost a slash."""
_SECRET_BY_NAME = re.compile(r"((?:\b|_)(?:ssl)?password=)[^\s&'\"]+", re.IGNORECASE)


def run(commands: click.Group) -> None:
    """Run a command line. Leaves with 0, 1 or 2, or 130 after Ctrl-C; never with a traceback for a user's error."""
    _have_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a console of another encoding shows what it can
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout.isatty():
        sys.stdout = cast(TextIO, InertStream(sys.stdout))
    sys.stderr = cast(TextIO, InertStream(sys.stderr))
    click.termui.visible_prompt_func = _typed
    try:
        commands.main(standalone_mode=False)
        status = 0
    except BaseException as error:
        status = _status(error)
    try:
        sys.stdout.flush()
    except OSError as error:
        status = _unwritable(error)
    with contextlib.suppress(OSError):  # nobody is left to be told
        sys.stderr.flush()
    sys.exit(status)


def _status(error: BaseException) -> int:
    """The exit status of what ended a command line, with a message for a person on standard error.

    Raises:
        BaseException: `error`, where it is a fault of ours.
    """
    match error:
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return 2
        case click.ClickException():
            said = io.StringIO()
            error.show(said)
            _say(without_passwords(said.getvalue().expandtabs(2)).rstrip("\n"))
            return error.exit_code
        case click.exceptions.Abort() | KeyboardInterrupt():
            _say("Interrupted.")
            return 130
        case OSError():
            return _unwritable(error)
        case UserError():
            _say(without_passwords(str(error)))
            return error.status
        case SystemExit():  # a command's own status, for results that are no errors
            return error.code if isinstance(error.code, int) else int(error.code is not None)
    raise error


def _unwritable(error: OSError) -> int:
    """Say what could not be written or read, unless whoever read standard output has seen enough.

    Python flushes standard output once more at exit and would complain of what is left: that goes to the null device.
    """
    if not isinstance(error, BrokenPipeError):
        what = f"{error.filename}" if error.filename else "Cannot write the output"
        _say(f"{what}: {error.strerror or error}.")
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _typed(prompt: str = "") -> str:
    """A line that is typed; Python's own `input` would write the prompt past the streams."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    return input()


def _say(message: str) -> None:
    with contextlib.suppress(OSError):
        tell(message)


class InertStream:
    """A terminal, or standard error: it writes lines of text, and nothing in them drives the terminal.

    `run` puts it in the place of `sys.stdout` where that is a terminal, and of `sys.stderr`, so that whoever prints
    passes here. What draws with escape sequences of its own takes the stream below, by `raw_stream`, and keeps content
    apart from them: `okf_compiler.terminal.Console` and the editor of the prompt.
    """

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw
        self.buffer = _InertBytes(self)

    def write(self, text: str) -> int:
        self.raw.write(inert_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


class _InertBytes(io.RawIOBase):
    """Bytes of UTF-8 for an `InertStream`."""

    def __init__(self, stream: InertStream) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def write(self, data: Any) -> int:
        self._stream.write(self._decoder.decode(bytes(data)))
        return len(data)

    def flush(self) -> None:
        self._stream.flush()


def raw_stream(stream: TextIO) -> TextIO:
    """The stream below an `InertStream`; any other as it is."""
    return stream.raw if isinstance(stream, InertStream) else stream


def tell(text: str) -> None:
    """Print a message on standard error, wrapped at words where that is a terminal."""
    from okf_compiler.terminal import Console

    Console(sys.stderr).say(text)


def _have_streams() -> None:
    """Open what is closed of the three standard streams (`>&-`, a daemon) as the null device.

    Each takes the lowest descriptor that is free, which is its own: else the next file that is opened would get it, and
    with it what children and libraries of C write to standard error.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - it stays open
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def without_passwords(message: str) -> str:
    """The message with the password of every connection URL as `***`: a URL given in a name's or a folder's place is
    quoted by whoever misses that name.

    >>> without_passwords("There is no database 'postgresql://ann:s3cret@db/shop'.")
    "There is no database 'postgresql://ann:***@db/shop'."
    >>> without_passwords("There is no folder host=db password=s3cret.")
    'There is no folder host=db password=***'
    """
    return _SECRET_BY_NAME.sub(r"\1***", _WORD_WITH_AT.sub(_without_password, message))


def _without_password(word: re.Match[str]) -> str:
    """A word up to its last @, with the password of the URL in it, which ends there, as `***`."""
    url = _UP_TO_PASSWORD.search(word[1])
    return f"{word[1][: url.end()]}***@" if url else word[0]
