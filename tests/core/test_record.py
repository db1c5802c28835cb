"""``record`` is a frozen dataclass in everything but the moment of its making."""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
import subprocess
import sys
import threading
from typing import ClassVar

import pytest

from flowsql_core.graph.match_specs import PatternColumn
from flowsql_core.record import record


@record
class Base:
    name: str
    kind: ClassVar[str] = "base"


@record
class Point(Base):
    x: int = 0
    note: str = dataclasses.field(default="", compare=False, repr=False)


@record(kw_only=True)
class Options:
    size: int = 1
    tags: tuple[str, ...] = dataclasses.field(default_factory=tuple)


class Plain(Point):
    """A subclass without the decorator."""


def test_fields_of_bases_come_first_and_defaults_hold() -> None:
    assert repr(Point("a", 2, note="hidden")) == "Point(name='a', x=2)"
    assert Point("a") == Point("a", note="other")
    assert hash(Point("a")) == hash(Point("a", note="other"))
    assert Options() == Options(size=1, tags=())


def test_instances_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point("a").x = 3  # type: ignore[misc]


def test_wrong_arguments_are_refused_by_the_first_call() -> None:
    @record
    class Fresh:
        a: int

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        Fresh()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Options(1)  # type: ignore[misc]


def test_dataclass_tools_see_a_dataclass_before_the_first_instance() -> None:
    @record
    class Fresh(Base):
        b: int = 1

    assert dataclasses.is_dataclass(Fresh)
    assert [field.name for field in dataclasses.fields(Fresh)] == ["name", "b"]
    assert dataclasses.replace(Fresh("x"), b=2) == Fresh("x", 2)


def test_a_subclass_without_the_decorator_is_made_too() -> None:
    assert Plain("p", 1).x == 1
    assert dataclasses.is_dataclass(Plain)


def test_patterns_copies_and_pickles() -> None:
    match Point("m", 5):
        case Point(name, x):
            assert (name, x) == ("m", 5)
    point = Point("c", 7)
    assert copy.copy(point) == point
    assert pickle.loads(pickle.dumps(point)) == point


def test_the_first_instances_may_come_from_many_threads() -> None:
    for _ in range(50):

        @record
        class Fresh(Base):
            a: int
            b: str = "b"

        barrier = threading.Barrier(8)
        made: list[object] = []

        def make(cls: type = Fresh, start: threading.Barrier = barrier, out: list[object] = made) -> None:
            start.wait()
            out.append(cls("n", 1))

        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [Fresh("n", 1)] * 8


OTHER_PROCESS = """
import pickle, sys
from dataclasses import fields
from flowsql_core.graph.match_specs import PatternColumn
from flowsql_core.record import record
found = pickle.loads(bytes.fromhex(sys.argv[1]))
assert found[0] == found[1] and found[0] is not found[1] and hash(found[0]) == hash(found[1])
match found[0]:
    case PatternColumn(a, b, c, d):
        print(repr(found[0]), [f.name for f in fields(found[0])])
"""


def test_instances_of_another_process_are_whole_although_nothing_was_made_here() -> None:
    sent = [PatternColumn(1, 0, True, 2), PatternColumn(1, 0, True, 2)]
    words = [sys.executable, "-c", OTHER_PROCESS, pickle.dumps(sent).hex()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(repr(sent[0]))
