"""The embedded local model: fetched, checked, served once per user of a machine; yields an api_base.

llama.cpp's OpenAI-compatible server runs in a child process of its own (`python -m okf_agent.models.local_model`),
which later runs find and use again, so that a second question starts at once. The child stays for as long as
someone is inside `serve()`, and IDLE_SECONDS more. It listens on 127.0.0.1, under a path that only
this user can read, since other users and web pages reach the same address.

    with serve(progress=bar) as api_base:
        ...  # any OpenAI client; the model's name does not matter
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import filelock

from okf_agent.downloads.fetch import Progress, silent
from okf_agent.models.weights import CODER, Weights, cache_folder, ensure_weights
from okf_compiler.errors import UserError
from okf_compiler.whole_file import write_whole

CONTEXT_TOKENS = 8192
"""Tokens of one prompt and its reply together."""
REPLY_TOKENS = 400
"""Tokens of one reply: a longer one goes round in circles."""
REPLY_SECONDS = 600
"""Seconds that a busy machine may take for one reply; asking again would only take longer."""
IDLE_SECONDS = 600
START_SECONDS = 180
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Place:
    """Where one kind of server (these weights, this llama.cpp) keeps its state."""

    folder: Path
    weights: Path
    version: str

    @property
    def lock(self) -> filelock.BaseFileLock:
        """Held while a server starts or leaves, and while a user of it comes in."""
        return filelock.FileLock(self.folder / f"{self.version}.lock")

    @property
    def state(self) -> Path:
        return self.folder / f"{self.version}.json"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.version}.log"

    @property
    def leases(self) -> Path:
        return self.folder / f"{self.version}.leases"


@dataclass(frozen=True)
class Running:
    """What the state file says of the server that runs."""

    pid: int
    address: str
    """`http://127.0.0.1:<port>/<secret path>`."""


def installed() -> bool:
    """Whether the extra `local` is installed."""
    try:
        return importlib.util.find_spec("xllamacpp") is not None
    except ValueError:  # a name that was blocked on purpose: sys.modules has None for it
        return False


@contextlib.contextmanager
def serve(
    folder: Path | None = None,
    progress: Progress = silent,
    *,
    weights: Weights = CODER,
    idle_seconds: float = IDLE_SECONDS,
) -> Iterator[str]:
    """The api_base of the local model's server, which lives at least as long as the block.

    `folder` is the cache (default: `cache_folder()`). Two that start at once share one server.

    Raises:
        UserError: the extra `local` is missing, the weights cannot be had, or the server does not start.
    """
    if not installed():
        raise UserError("The local model needs the extra `local`: pip install 'okf-sql-agent[local]'")
    folder = folder or cache_folder()
    place = _place(folder / "server", ensure_weights(progress, weights=weights, folder=folder))
    lease = filelock.FileLock(place.leases / uuid.uuid4().hex)
    try:
        place.leases.mkdir(parents=True, exist_ok=True, mode=0o700)
        with place.lock:
            running = _find(place) or _start(place, idle_seconds, progress)
            lease.acquire()
    except OSError as error:
        raise UserError(
            f"The local model's server cannot keep its state in {place.folder}: {error.strerror or error}."
        ) from None
    try:
        yield running.address + "/v1"
    finally:
        lease.release()
        with contextlib.suppress(OSError):
            Path(lease.lock_file).unlink(missing_ok=True)


def stop(folder: Path | None = None, *, unused_only: bool = False) -> tuple[int, int]:
    """End the servers of this user, or with `unused_only` those that nobody uses; how many ended, and how many stay."""
    ended = stay = 0
    for state in ((folder or cache_folder()) / "server").glob("*.json"):
        running = _read(state)
        if not running or not _answers(running.address):
            continue
        if unused_only and _in_use(Place(state.parent, Path(), state.name.removesuffix(".json"))):
            stay += 1
            continue
        os.kill(running.pid, signal.SIGTERM)
        ended += 1
    return ended, stay


def _place(folder: Path, weights: Path) -> Place:
    version = f"{weights.stem}-{metadata.version('xllamacpp')}-{CONTEXT_TOKENS}-uncached"
    return Place(folder, weights, version)


# --- The side that asks


def _find(place: Place) -> Running | None:
    """The server that runs and answers, or None."""
    running = _read(place.state)
    return running if running and _answers(running.address) else None


def _read(state: Path) -> Running | None:
    try:
        return Running(**json.loads(state.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _answers(address: str) -> bool:
    # Without the environment's proxies: they do not know this machine's own ports.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(address + "/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def _start(place: Place, idle_seconds: float, progress: Progress) -> Running:
    """Start the child and wait until it answers; it outlives this process and ignores its Ctrl-C."""
    place.state.unlink(missing_ok=True)
    progress("Local model: starting", 0, 0)
    command = [sys.executable, "-m", "okf_agent.models.local_model"]
    arguments = [str(place.weights), str(place.folder), str(idle_seconds)]
    with place.log.open("wb") as log:
        child = subprocess.Popen(
            command + arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=place.folder,  # not the user's: it would be held for as long as the server lives
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while child.poll() is None and time.monotonic() < deadline:
            running = _read(place.state)
            if running and _answers(running.address):
                return running
            time.sleep(0.05)
        raise UserError(_why_not(place, child.poll()))
    except BaseException:
        child.kill()
        raise


def _why_not(place: Place, status: int | None) -> str:
    said = place.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
    ended = f"ended with status {status}" if status is not None else f"did not answer in {START_SECONDS} s"
    return "\n".join(
        [
            f"The local model's server {ended}.",
            *said,
            f"It needs about 1.5 GB of memory. Its log is {place.log}. A provider's key in .env is the "
            "other way (see PROVIDERS.md).",
        ]
    )


# --- The child


def main(weights: Path, folder: Path, idle_seconds: float) -> None:
    """Serve until nobody has used the server for `idle_seconds`, or until a signal."""
    place = _place(folder, weights)
    leave = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: leave.set())
    server, running = _llama_server(weights)
    write_whole(place.state, json.dumps(asdict(running)), private=True)
    _stay(place, running, idle_seconds, leave)
    del server


def _stay(place: Place, running: Running, idle_seconds: float, leave: threading.Event) -> None:
    """Return once nobody has used the server for `idle_seconds`, its first user not having come yet included."""
    used = time.monotonic()
    while not leave.wait(POLL_SECONDS):
        if _read(place.state) != running:  # another server took its place: its starter did not wait
            return
        if _in_use(place):
            used = time.monotonic()
        elif time.monotonic() - used > idle_seconds and _may_leave(place):
            return


def _llama_server(weights: Path) -> tuple[object, Running]:
    import xllamacpp

    path = "/" + secrets.token_urlsafe(16)
    options = xllamacpp.CommonParams()
    options.model.path = str(weights)
    options.n_ctx = CONTEXT_TOKENS
    options.n_parallel = 1
    options.fit_params = False
    options.hostnames = ["127.0.0.1"]
    options.api_prefix = path
    options.cors_origins = "http://127.0.0.1"
    options.endpoint_slots = False
    options.ui = False
    options.use_jinja = True
    options.verbosity = 1
    # Every prompt is read anew. What a cached beginning leaves to read is a smaller batch, whose sums round otherwise:
    # the same question was answered with 52 at first, and with 55 when it was asked again.
    options.cache_prompt = False
    options.cache_ram_mib = 0
    options.no_extra_bufts = True  # repacked weights: 0.6 GB and 3 s more, and no faster where measured
    # Threads of one step wait for each other: where other processes take a core from one of them, all stand still.
    # Waiting asleep, and one core left free for writing, costs little when the machine is quiet and keeps the pace.
    cores = os.cpu_count() or 1
    options.cpuparams.n_threads = max(1, cores - 1)
    options.cpuparams_batch.n_threads = cores
    options.cpuparams.poll = options.cpuparams_batch.poll = 0
    server = xllamacpp.Server(options)
    return server, Running(os.getpid(), server.listening_address.rstrip("/") + path)


def _in_use(place: Place) -> bool:
    """Whether a living process holds a lease: its lock goes with it, however it ends."""
    for lease in place.leases.glob("*"):
        try:
            with filelock.FileLock(lease, timeout=0):
                continue
        except filelock.Timeout:
            return True
    return False


def _may_leave(place: Place) -> bool:
    """Take back the state file, unless someone is just coming in."""
    try:
        with place.lock.acquire(timeout=0):
            if _in_use(place):
                return False
            place.state.unlink(missing_ok=True)
            for lease in place.leases.glob("*"):  # of users that were killed
                lease.unlink(missing_ok=True)
            return True
    except filelock.Timeout:
        return False


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
