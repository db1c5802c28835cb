"""Real servers on loopback for tests: started by the scripts beside the checkout, once a run, or named by variables.

``make test-servers`` runs the tests that ask for them. A server that cannot be had skips its tests with the reason.
"""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

#: Starts servers; its README says what each prints.
SCRIPTS = Path(__file__).resolve().parents[2] / "shared" / "servers"
#: The variable that names a server which runs already.
NAMED_BY = {
    "kafka": "KAFKA",
    "postgres": "PG_URL",
    "mariadb": "MYSQL_URL",
    "registry": "REGISTRY_URL",
    "s3": "S3_ENDPOINT",
}
_CANNOT_BE_HAD = 3
_LIMIT_S = 300


class Server:
    """A server that was started here.

    Args:
        environment: what its script sees beside the environment of this process.
        dies: it will be killed and started again. While it is away its clients call its port, and the kernel may give
            the port of a connection that calls, so this server takes one that the kernel gives to nobody.

    ``env``: what it told of itself, e.g. ``KAFKA``, ``PG_HOST``.
    """

    def __init__(
        self, name: str, folder: Path, dies: bool = False, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._environment = environment or {}
        self.folder = folder
        self._arguments = ["--port", str(quiet_port())] if dies else []
        self.env = self.start()

    def start(self) -> dict[str, str]:
        """Start it, or again after :meth:`kill`: with the same data on the same port. Skips where it cannot be had."""
        done = self._call("start", *self._arguments)
        if done.returncode == _CANNOT_BE_HAD:
            pytest.skip((done.stderr.strip().splitlines() or [f"{self.name} cannot be had here"])[-1])
        assert done.returncode == 0, done.stderr
        words = (word for line in done.stdout.splitlines() for word in shlex.split(line) if "=" in word)
        return dict(word.split("=", 1) for word in words)

    def kill(self) -> None:
        """End it as a crash does (SIGKILL)."""
        self._call("kill")

    def stop(self) -> None:
        """End it."""
        self._call("stop")

    def _call(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        # Output goes through a file: a daemon keeps a pipe open.
        with open(self.folder.with_suffix(".out"), "w+") as out, open(self.folder.with_suffix(".err"), "w+") as err:
            code = subprocess.run(
                [str(SCRIPTS / f"{self.name}.sh"), command, str(self.folder), *arguments],
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self._environment},
                timeout=_LIMIT_S,
            ).returncode
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess([], code, out.read(), err.read())


def quiet_port() -> int:
    """A free port below those that the kernel gives to connections."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as held, contextlib.suppress(OSError):
            held.bind(("127.0.0.1", port))
            return port


def started(name: str) -> Iterator[dict[str, str]]:
    """What a server tells of itself: one that the environment names, else one that lives as long as the caller."""
    if NAMED_BY[name] in os.environ:
        yield dict(os.environ)
        return
    with own_server(name, f", or {NAMED_BY[name]} in the environment") as server:
        yield server.env


@contextlib.contextmanager
def own_server(name: str, otherwise: str = "") -> Iterator[Server]:
    """A server that nobody else uses, which may be killed; skips the test where it cannot be had.

    Args:
        otherwise: what else would do, for the reason of a skipped test.
    """
    if not SCRIPTS.exists():
        pytest.skip(f"needs the scripts that start servers{otherwise}")
    with tempfile.TemporaryDirectory(prefix="flowsql-") as folder:
        # As root, some servers run as a user of their own.
        Path(folder).chmod(0o755)
        server = Server(name, Path(folder) / name)
        try:
            yield server
        finally:
            server.stop()


def _fixture(name: str) -> object:
    def run() -> Iterator[dict[str, str]]:
        yield from started(name)

    run.__doc__ = f"What {name} tells of itself; see the README of the scripts."
    return pytest.fixture(scope="session", name=f"{name}_server")(run)


kafka_server = _fixture("kafka")
postgres_server = _fixture("postgres")
mariadb_server = _fixture("mariadb")
registry_server = _fixture("registry")
s3_server = _fixture("s3")
