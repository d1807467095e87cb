"""What all tests share: where the real data lies, and a PostgreSQL."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.servers import debian15, own_server

from okf_agent.engines import Server

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs the tests in the background ignores Ctrl-C for them and for every process they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


OWN_FOLDER = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Give each run folders of its own.

    Of those that runs share, each start of pytest takes the right to enter from others, also from the account that
    servers run as while root's tests run.
    """
    if not config.option.basetemp and not hasattr(config, "workerinput"):
        config.option.basetemp = config.stash[OWN_FOLDER] = tempfile.mkdtemp(prefix="okf-pytest-")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remove them, unless there is a failure to look into."""
    if exitstatus == pytest.ExitCode.OK and OWN_FOLDER in session.config.stash:
        shutil.rmtree(session.config.stash[OWN_FOLDER], ignore_errors=True)


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real documents and dumps, named by OKF_TEST_DATA."""
    folder = os.environ.get("OKF_TEST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("OKF_TEST_DATA does not name a folder with the real documents and dumps")
    return Path(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL of the tests' own, stopped at the end: databases made in it should have names of their own."""
    with own_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres15() -> Iterator[Server]:
    """The same with Debian's PostgreSQL 15."""
    with own_server(debian15()) as server:
        yield server


@pytest.fixture(params=["18", pytest.param("15", marks=pytest.mark.slow)])
def each_postgres(request: pytest.FixtureRequest) -> Server:
    """Both of them, one after the other."""
    name = {"18": "postgres", "15": "postgres15"}[request.param]
    server: Server = request.getfixturevalue(name)
    return server
