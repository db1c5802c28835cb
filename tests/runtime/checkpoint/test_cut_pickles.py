"""State of SQL holds no Python objects: every operator without a user's function is cut with pickling forbidden."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import cloudpickle
import pytest

from flowsql_core.graph.job import JobGraph
from flowsql_runtime.checkpoint.trust import holds_objects
from flowsql_runtime.testing.cut import run_cut, run_whole
from tests.sql.test_cut import CASES, Session, folded, folder, session_of

_ = folder

#: How a pickle of protocol 2 or later begins, with its first frame.
PICKLES = (b"\x80\x05\x95", b"\x80\x04\x95", b"\x80\x05(", b"\x80\x05]", b"\x80\x05}", b"\x80\x05\x8c")


def planned(session: Session, sql: str, parallelism: int) -> JobGraph:
    options = {"flowsql.source.batch-rows": 16, "python.execution-mode": "thread"}
    return session.graph(sql, parallelism, **options)


def never(*args: Any, **options: Any) -> NoReturn:
    raise AssertionError("something is pickled")


def cut_without_pickles(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, every: bool) -> int:
    seen: set[type] = set()
    done = 0
    for case in CASES:
        session = session_of(folder, case)
        graph = planned(session, case.sql, 1)
        specs = {type(node.spec) for vertex in graph.vertices for node in vertex.operators}
        if holds_objects(graph) or (specs <= seen and not every):
            continue
        seen |= specs
        done += 1
        whole = folded(run_whole(graph)["collect"])
        disk = tmp_path / f"{case.number}"
        with monkeypatch.context() as without:
            for module in (pickle, cloudpickle):
                for name in ("loads", "dumps", "load", "dump"):
                    without.setattr(module, name, never)
            without.setattr(pickle, "Pickler", never)
            without.setattr(pickle, "Unpickler", never)
            cut = run_cut(partial(planned, session, case.sql), (1, 1), 90, folder=disk)
        assert folded(cut.rows("collect")) == whole, case.sql
        for path in disk.rglob("*"):
            data = path.read_bytes() if path.is_file() else b""
            assert not any(mark in data for mark in PICKLES), (case.sql, path)
    return done


def test_each_operator_is_cut_without_pickles(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cut_without_pickles(tmp_path, folder, monkeypatch, every=False) > 10


@pytest.mark.nightly
def test_each_query_is_cut_without_pickles(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cut_without_pickles(tmp_path, folder, monkeypatch, every=True) > 100
