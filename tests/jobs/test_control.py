"""The control endpoint: sockets, messages, who may ask, what is left behind. Real sockets, jobs that are never run."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from flowsql.jobs import everywhere, remote
from flowsql.jobs.control_folder import made_control_folder
from flowsql.jobs.endpoint import ControlEndpoint
from flowsql.jobs.handlers import handle
from flowsql.jobs.job_info import JobInfo
from flowsql.jobs.registry import ENDED_KEPT, JobRegistry
from flowsql.jobs.remote import RemoteProcess
from flowsql_core.errors import ExecutionError, FlowSqlError
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.cluster.job import Job

UNKNOWN = "0" * 32


def job(name: str = "job") -> Job:
    return Job(JobGraph(name, (), ()))


@pytest.fixture
def registry() -> JobRegistry:
    return JobRegistry()


@pytest.fixture
def endpoint(registry: JobRegistry) -> Iterator[ControlEndpoint]:
    made = ControlEndpoint(lambda method, arguments: handle(registry, method, arguments))
    yield made
    made.close()


def process_of(endpoint: ControlEndpoint) -> RemoteProcess:
    return RemoteProcess(os.getpid(), endpoint.path)


def say(endpoint: ControlEndpoint, line: bytes) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(endpoint.path))
        with contextlib.suppress(BrokenPipeError):
            # The answer to a line that is too long comes before its end.
            client.sendall(line)
        answer = client.makefile("rb").readline()
    found: dict[str, Any] = json.loads(answer)
    return found


def test_jobs_are_listed_the_newest_first(registry: JobRegistry, endpoint: ControlEndpoint) -> None:
    first, second = job("first"), job("second")
    second._submitted_ms = first.submitted_ms + 1
    registry.add(first)
    registry.add(second)
    found = process_of(endpoint).jobs()
    assert [info.name for info in found] == ["second", "first"]
    assert found[1] == JobInfo.of(first)
    assert found[1].process == os.getpid()
    assert found[1].is_scheduled


def test_an_ended_job_is_remembered_and_let_go(registry: JobRegistry) -> None:
    ended = job()
    registry.add(ended)
    ended._running()
    ended.cancel()
    ended._end()
    info = registry.find(ended.id)
    assert info is not None
    assert (info.status, info.is_running, info.is_scheduled) == ("CANCELED", False, False)
    assert info.ended_ms is not None
    assert info.duration_ms(10**15) == info.ended_ms - info.started_ms
    assert registry.alive(ended.id) is None
    for _ in range(ENDED_KEPT + 5):
        one = job()
        registry.add(one)
        one._end()
    assert len(registry.infos()) == ENDED_KEPT


@pytest.mark.parametrize(
    ("method", "arguments", "code"),
    [
        ("cancel", {"job": UNKNOWN}, "job-not-found"),
        ("savepoint", {"job": UNKNOWN, "directory": "/tmp"}, "job-not-found"),
        ("stop", {"job": "12"}, "bad-job-id"),
        ("explode", {}, "control-method"),
    ],
)
def test_what_goes_wrong_there_is_raised_here(
    endpoint: ControlEndpoint, method: str, arguments: Mapping[str, Any], code: str
) -> None:
    with pytest.raises(ExecutionError) as failed:
        process_of(endpoint).ask(method, arguments)
    assert failed.value.code == code


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"hello\n", "control-protocol"),
        (b"[1]\n", "control-protocol"),
        (b'{"flowsql": 1}\n', "control-protocol"),
        (b'{"flowsql": 1, "method": "list", "arguments": 3}\n', "control-protocol"),
        (b'{"flowsql": 2, "method": "list"}\n', "control-version"),
        (b"x" * ((1 << 20) + 70_000), "control-protocol"),
    ],
)
def test_a_line_that_is_no_request_is_answered_with_an_error(endpoint: ControlEndpoint, line: bytes, code: str) -> None:
    answer = say(endpoint, line)
    assert answer["flowsql"] == 1
    assert answer["error"]["code"] == code


def test_a_bug_of_a_handler_is_told_and_the_endpoint_goes_on() -> None:
    def broken(method: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        raise KeyError("job")

    endpoint = ControlEndpoint(broken)
    try:
        for _ in range(2):
            with pytest.raises(ExecutionError, match="FlowSQL bug"):
                process_of(endpoint).ask("cancel", {})
    finally:
        endpoint.close()


def test_the_folder_is_the_users_alone(runtime_folder: Path, registry: JobRegistry) -> None:
    runtime_folder.chmod(0o755)
    with pytest.raises(ExecutionError, match="belongs to this user alone"):
        ControlEndpoint(lambda method, arguments: {})
    with pytest.raises(ExecutionError, match="belongs to this user alone"):
        everywhere.known_jobs()
    runtime_folder.rmdir()
    assert everywhere.known_jobs().troubles == ()
    assert made_control_folder().stat().st_mode & 0o777 == 0o700


def test_the_socket_goes_with_the_endpoint(endpoint: ControlEndpoint) -> None:
    assert endpoint.path.is_socket()
    endpoint.close()
    assert not endpoint.path.exists()
    with pytest.raises(ExecutionError, match="ended before it answered"):
        process_of(endpoint).ask("list", {})


def test_sockets_of_dead_processes_are_swept(runtime_folder: Path, endpoint: ControlEndpoint) -> None:
    stale = runtime_folder / "4000000-00ff00ff.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(stale))
        dead.listen()
    other = runtime_folder / "notes.txt"
    other.write_text("not ours")
    everywhere.known_jobs()
    assert not stale.exists()
    assert endpoint.path.exists()
    assert other.exists()


def test_a_process_that_is_frozen_is_named_and_the_others_answer(
    runtime_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "QUICK_S", 0.05)
    with socket.socket(socket.AF_UNIX) as frozen:
        frozen.bind(str(runtime_folder / "4000000-00ff00ff.sock"))
        frozen.listen()
        assert [str(trouble) for trouble in everywhere.known_jobs().troubles] == ["Process 4000000 does not answer."]
        with pytest.raises(ExecutionError, match="Could not find Flink job") as missing:
            everywhere.act_on("cancel", UNKNOWN)
        assert "Process 4000000 does not answer." in missing.value.render()


def test_a_process_that_ends_before_it_answers_is_told(runtime_folder: Path) -> None:
    path = runtime_folder / "4000000-00ff00ff.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def hang_up() -> None:
            client, _ = server.accept()
            client.recv(1 << 16)
            client.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(ExecutionError, match="Process 4000000 ended before it answered"):
            RemoteProcess(4_000_000, path).ask("savepoint", {"job": UNKNOWN})
        thread.join()


def test_the_end_of_a_process_waits_for_answers_under_way() -> None:
    asked, answer = threading.Event(), threading.Event()

    def slow(method: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        asked.set()
        assert answer.wait(10)
        return {"path": "/there"}

    endpoint = ControlEndpoint(slow)
    found: list[Any] = []
    client = threading.Thread(target=lambda: found.append(process_of(endpoint).ask("stop", {"job": UNKNOWN})))
    client.start()
    assert asked.wait(10)
    closing = threading.Thread(target=endpoint.close)
    closing.start()
    answer.set()
    closing.join(10)
    client.join(10)
    assert found == [{"path": "/there"}]


def test_a_path_that_is_too_long_for_a_socket_is_named(runtime_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWSQL_RUNTIME_DIR", str(runtime_folder / ("x" * 100)))
    with pytest.raises(FlowSqlError, match="too long a path for a socket"):
        ControlEndpoint(lambda method, arguments: {})
