"""Small real servers on loopback for tests: brokers and stores that start in a second, each in a folder of its own.

What is installed serves; else Debian's packages are unpacked into a cache (nothing is installed by that), Go builds
what is written in Go, and Maven fetches what is written in Java. What cannot be had skips its tests with the reason.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

CACHE: Final = Path(
    os.environ.get("FLOWSQL_SERVERS_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flowsql-servers"
)
_LIMIT_S: Final = 60
_FETCH_LIMIT_S: Final = 300


class LocalServer:
    """A server that a test started.

    Args:
        command: of the server, by its port and folder.
        answers: whether the server at a port is ready.
    """

    def __init__(
        self,
        command: Callable[[int, Path], Sequence[str | Path]],
        folder: Path,
        answers: Callable[[int], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.port = free_port()
        self._command = command
        self._folder = folder
        self._answers = answers
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, or again after :meth:`kill`: with the same data on the same port."""
        log = self._folder / "server.log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [str(part) for part in self._command(self.port, self._folder)],
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                env=os.environ | self._environment,
                cwd=self._folder,
            )
        end = time.monotonic() + _LIMIT_S
        while not self._answers(self.port):
            alive = self._process.poll() is None and time.monotonic() < end
            assert alive, log.read_text(errors="replace")[-3000:]
            time.sleep(0.02)

    def kill(self) -> None:
        """End it as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def accepts(port: int) -> bool:
    """Whether somebody listens."""
    try:
        with socket.create_connection(("127.0.0.1", port), 1):
            return True
    except OSError:
        return False


def debian(program: str, *packages: str) -> tuple[Path, dict[str, str]]:
    """A program that is installed, or out of unpacked Debian packages; and the environment that it runs in."""
    installed = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")
    if installed is not None:
        return Path(installed), {}
    root = CACHE / f"debian-{program}"
    if not root.exists():
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            pytest.skip(f"'{program}' is not installed, and there is no Debian to take its package from")
        with tempfile.TemporaryDirectory(dir=_cache()) as folder:
            _fetch(["apt-get", "-q", "download", *packages], program, folder)
            unpacked = Path(folder) / "root"
            for package in Path(folder).glob("*.deb"):
                _fetch(["dpkg-deb", "-x", str(package), str(unpacked)], program, folder)
            unpacked.replace(root)
    found = next(path for part in ("usr/bin", "usr/sbin") if (path := root / part / program).exists())
    libraries = [str(path) for place in ("usr/lib", "lib") for path in root.glob(f"{place}/*-linux-gnu")]
    return found, {"LD_LIBRARY_PATH": ":".join(libraries)}


def go_program(program: str, sources: Path) -> Path:
    """A program that Go builds, once."""
    found = CACHE / "go" / program
    if not found.exists():
        if shutil.which("go") is None:
            pytest.skip(f"'{program}' is built by Go, which is not here")
        with tempfile.TemporaryDirectory(dir=_cache()) as folder:
            shutil.copytree(sources, folder, dirs_exist_ok=True)
            _fetch(["go", "build", "-mod=mod", "-o", f"{folder}/made", "."], program, folder)
            found.parent.mkdir(exist_ok=True)
            Path(folder, "made").replace(found)
    return found


def _cache() -> Path:
    CACHE.mkdir(parents=True, exist_ok=True)
    return CACHE


def _fetch(command: list[str], what: str, folder: str | Path, more: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=folder, env=os.environ | dict(more or {}), capture_output=True, text=True, timeout=_FETCH_LIMIT_S
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it failed"])[-1]
        pytest.skip(f"'{what}' cannot be had here: {' '.join(command[:3])}: {reason}")


def lived(make: Callable[[Path], LocalServer]) -> Iterator[LocalServer]:
    """A server for as long as the caller."""
    with tempfile.TemporaryDirectory(prefix="flowsql-") as folder:
        Path(folder).chmod(0o755)
        server = make(Path(folder))
        try:
            yield server
        finally:
            server.stop()


def redis(folder: Path) -> LocalServer:
    """Redis, which keeps what it was told in a log."""
    program, environment = debian(
        "redis-server", "redis-server", "redis-tools", "libjemalloc2", "liblzf1", "libatomic1", "libsystemd0"
    )

    def command(port: int, folder: Path) -> Sequence[str | Path]:
        return [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--appendonly", "yes",
                "--appendfsync", "always", "--save", ""]  # fmt: skip

    return LocalServer(command, folder, accepts, environment)


def ferretdb(folder: Path) -> LocalServer:
    """FerretDB, which speaks MongoDB's protocol over SQLite."""
    program = go_program("ferretdb", Path(__file__).parent / "ferretdb_server")
    return LocalServer(lambda port, folder: [program, f"127.0.0.1:{port}", folder], folder, accepts)


@pytest.fixture(scope="session")
def mongodb_server() -> Iterator[LocalServer]:
    """A server of MongoDB's protocol."""
    yield from lived(ferretdb)


def opensearch(folder: Path) -> LocalServer:
    """OpenSearch, whose bulk requests are those of Elasticsearch."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        pytest.skip("OpenSearch is fetched by Maven and run by Java, and one of them is not here")
    sources = Path(__file__).parent / "opensearch_server"
    libraries = CACHE / "opensearch-2.19.6"
    if not libraries.exists():
        with tempfile.TemporaryDirectory(dir=_cache()) as made:
            copied = ["mvn", "-q", "-B", "-f", str(sources / "pom.xml"), "dependency:copy-dependencies"]
            _fetch([*copied, "-DincludeScope=runtime", f"-DoutputDirectory={made}/lib"], "opensearch", made)
            Path(made, "lib").replace(libraries)

    def command(port: int, folder: Path) -> Sequence[str | Path]:
        return ["java", "-Xmx512m", "-cp", f"{libraries}/*", sources / "Server.java", str(port), folder]

    return LocalServer(command, folder, accepts)


@pytest.fixture(scope="session")
def opensearch_server() -> Iterator[LocalServer]:
    """An OpenSearch node."""
    yield from lived(opensearch)


def mosquitto(folder: Path) -> LocalServer:
    """Mosquitto: nobody needs a login for topics below ``open``; sessions outlive it."""
    program, environment = debian(
        "mosquitto", "mosquitto", "libcjson1", "libmosquitto1", "libdlt2", "libwrap0", "libwebsockets17", "libev4",
        "libuv1", "libcap2", "libsystemd0",
    )  # fmt: skip

    def command(port: int, folder: Path) -> Sequence[str | Path]:
        settings = folder / "mosquitto.conf"
        settings.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location {folder}/\n"
            f"autosave_interval 1\nautosave_on_changes true\nmax_queued_messages 0\nacl_file {folder}/acl\n"
            f"password_file {folder}/passwords\nuser root\n"
        )
        (folder / "acl").write_text("topic readwrite open/#\ntopic read secret/#\nuser ann\ntopic readwrite #\n")
        # The password is "right".
        (folder / "passwords").write_text(
            "ann:$7$101$eXDZhZ4dxuyKI8Ny$ibsM4/VJHKQ9zC2OSoeUTeBSR7NG+e0W+8crjRjxsXeZmoJ0EJWcsnvivl0SD7S3Uqnd8it9PElarLXn"
            "eWFJQA==\n"
        )
        return [program, "-c", settings]

    return LocalServer(command, folder, accepts, environment)


@pytest.fixture(scope="session")
def mqtt_server() -> Iterator[LocalServer]:
    """An MQTT broker."""
    yield from lived(mosquitto)


def nats(folder: Path, *more: str) -> LocalServer:
    """A NATS server with JetStream."""
    program, environment = debian("nats-server", "nats-server")

    def command(port: int, folder: Path) -> Sequence[str | Path]:
        return [program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", folder, *more]

    return LocalServer(command, folder, accepts, environment)


@pytest.fixture(scope="session")
def nats_server() -> Iterator[LocalServer]:
    """A NATS server."""
    yield from lived(nats)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[LocalServer]:
    """A Redis server."""
    yield from lived(redis)
