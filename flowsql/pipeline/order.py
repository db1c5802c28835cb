"""The order of a project: definitions by what they use, nodes by the tables that they write and read."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from flowsql.pipeline.place import Place
from flowsql.pipeline.project import Definition, Node, Project
from flowsql_core.catalog import ObjectPath
from flowsql_core.errors import FlowSqlError
from flowsql_grammar import ast

T = TypeVar("T")


def ordered_definitions(project: Project) -> list[Definition]:
    """Definitions, each behind what it uses, else as they stand in the files.

    Raises:
        FlowSqlError: views that are made of each other.
    """
    tables, functions = project.tables, project.functions
    items = sorted(project.definitions, key=lambda each: each.rank)

    def used(each: Definition) -> list[Definition]:
        found = [tables[path] for path in each.reads if path in tables]
        return found + [functions[name] for name in sorted(each.calls) if name in functions]

    def circle(found: Sequence[Definition]) -> FlowSqlError:
        steps = [
            f"{each.place} defines {each.path}, which {user.place} reads"
            for each, user in zip(found, [*found[1:], found[0]], strict=True)
        ]
        return found[0].place.error("pipeline-cycle", f"Definitions need each other: {'; '.join(steps)}")

    return _sorted(items, {id(each): used(each) for each in items}, circle)


def stored_reads(project: Project, node: Node) -> dict[ObjectPath, Place]:
    """The tables that a node reads, through views, each with the place of the name in the node."""
    tables = project.tables
    found: dict[ObjectPath, Place] = {}

    def follow(path: ObjectPath, place: Place, seen: frozenset[ObjectPath]) -> None:
        definition = tables.get(path)
        if definition is not None and isinstance(definition.statement, ast.CreateView) and path not in seen:
            for inner in definition.reads:
                follow(inner, place, seen | {path})
        else:
            found.setdefault(path, place)

    for path, place in node.reads.items():
        follow(path, place, frozenset())
    return found


def ordered_nodes(project: Project) -> tuple[list[Node], dict[Node, list[Node]]]:
    """Nodes in the order in which they run, and for each those that come right before it.

    All that write a table come before those that read it, in the order of the files.

    Raises:
        FlowSqlError: a circle of tables.
    """
    writers: dict[ObjectPath, list[Node]] = {}
    for node in project.nodes:
        for path in node.tables:
            writers.setdefault(path, []).append(node)
    for group in writers.values():
        # A CREATE TABLE AS makes the table that others add to.
        group.sort(key=lambda node: node.definition is None)
    before: dict[Node, list[Node]] = {}
    for node in project.nodes:
        earlier = [writer for path in stored_reads(project, node) for writer in writers.get(path, ())]
        for path in node.tables:
            group = writers[path]
            earlier += group[: group.index(node)]
        before[node] = list(dict.fromkeys(earlier))

    def circle(found: Sequence[Node]) -> FlowSqlError:
        steps = []
        for node, reader in zip(found, [*found[1:], found[0]], strict=True):
            reads = stored_reads(project, reader)
            shared = [path for path in node.tables if path in reads] or list(node.tables)
            who = "it" if reader is node else str(reader.place)
            verb = "reads" if shared[0] in reads else "adds to"
            steps.append(f"{node.place} writes {shared[0]}, which {who} {verb}")
        return found[0].place.error("pipeline-cycle", f"The statements wait for each other: {'; '.join(steps)}")

    return _sorted(project.nodes, {id(node): before[node] for node in project.nodes}, circle), before


def _sorted(
    items: Sequence[T], before: Mapping[int, Sequence[T]], circle: Callable[[Sequence[T]], FlowSqlError]
) -> list[T]:
    """Items behind those before them, else in the given order; ``circle`` makes the error of one."""
    place = {id(item): number for number, item in enumerate(items)}
    waits = {id(item): {id(other) for other in before[id(item)]} for item in items}
    ready = [place[key] for key, others in waits.items() if not others]
    heapq.heapify(ready)
    done: list[T] = []
    while ready:
        item = items[heapq.heappop(ready)]
        done.append(item)
        for key, others in waits.items():
            if id(item) in others:
                others.discard(id(item))
                if not others:
                    heapq.heappush(ready, place[key])
    if len(done) < len(items):
        stuck = [item for item in items if waits[id(item)]]
        found = _circle(stuck[0], before, {id(item) for item in stuck})
        first = min(range(len(found)), key=lambda number: place[id(found[number])])
        raise circle([*found[first:], *found[:first]])
    return done


def _circle(start: T, before: Mapping[int, Sequence[T]], stuck: set[int]) -> list[T]:
    """A circle of items, each before the next one."""
    way = [start]
    while True:
        way.append(next(other for other in before[id(way[-1])] if id(other) in stuck))
        for number, item in enumerate(way[:-1]):
            if item is way[-1]:
                return way[number:-1][::-1]
