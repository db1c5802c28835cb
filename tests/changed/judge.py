"""Run a query up to a cut, go on with its edit, and hold the answer against that of the edit alone."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from flowsql.session_zone import session_zone
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import LOCAL_TIME_ZONE
from flowsql_core.graph.job import JobGraph
from flowsql_core.span import Source
from flowsql_grammar import parse_statement
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.statement import bind_statement
from flowsql_planner.planner import Planner
from flowsql_runtime.checkpoint.evolution import Change, Fate, compare, remembered_of
from flowsql_runtime.checkpoint.late_calls import with_late_calls
from flowsql_runtime.checkpoint.settings import CHANGED_STATE, IGNORE_UNCLAIMED
from flowsql_runtime.testing.cut import run_cut, run_whole

from .families import Pair

ROWS: Final = 60


def make_tables(folder: Path, draw: random.Random) -> None:
    """Random rows of all tables."""
    for name in ("a", "b", "versions"):
        lines, at = [], 0.0
        for row in range(ROWS):
            at += draw.choice((0.25, 0.5, 1.0, 2.5))
            number = draw.choice([*map(str, range(10)), ""])
            cents = draw.randrange(900) / 100
            stamp = f"2024-01-01 10:{int(at) // 60:02}:{at % 60:06.3f}"
            fields = [row, draw.randrange(4), draw.randrange(3), number, draw.choice("abc"), cents, stamp]
            lines.append(",".join(map(str, fields)) + "\n")
        (folder / f"{name}.csv").write_text("".join(lines), encoding="utf-8")
    table: dict[int, dict[str, Any]] = {}
    events = []
    for _ in range(ROWS):
        key = draw.randrange(9)
        after: dict[str, Any] | None = {
            "id": key,
            "who": draw.choice(["ann", "bob", "cat"]),
            "v": draw.choice([None, *range(9)]),
        }
        before = table.pop(key, None)
        kind = "c" if before is None else "u"
        if before is not None and draw.randrange(4) == 0:
            after, kind = None, "d"
        if after is not None:
            table[key] = after
        events.append(json.dumps({"before": before, "after": after, "op": kind}) + "\n")
    (folder / "stock.json").write_text("".join(events), encoding="utf-8")


class Session:
    """Plans queries over the tables of a folder."""

    def __init__(self, folder: Path, options: Mapping[str, str], types: Mapping[str, str] = {}) -> None:
        self.environment = TableEnvironment.create()
        config = self.environment.get_config().set("table.local-time-zone", "UTC")
        for key, value in {"flowsql.source.batch-rows": "16", **options}.items():
            config.set(key, value)
        kinds = {"id": "INT", "k": "INT", "j": "INT", "v": "INT", "s": "STRING", "d": "DECIMAL(8, 2)"} | dict(types)
        columns = ", ".join(f"{name} {type_}" for name, type_ in kinds.items())
        columns += ", ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND"
        for name in ("a", "b", "versions"):
            key = ", PRIMARY KEY (k) NOT ENFORCED" if name == "versions" else ", p AS PROCTIME()"
            self.environment.execute_sql(
                f"CREATE TABLE {name} ({columns}{key}) WITH ('connector' = 'filesystem', 'format' = 'csv', "
                f"'csv.null-literal' = '', 'scan.parallelism' = '1', 'path' = '{folder / name}.csv')"
            )
        self.environment.execute_sql(
            f"CREATE TABLE stock (id {kinds['id']}, who STRING, v {kinds['v']}, PRIMARY KEY (id) NOT ENFORCED) WITH ("
            f"'connector' = 'filesystem', 'format' = 'debezium-json', 'scan.parallelism' = '1', "
            f"'path' = '{folder / 'stock.json'}')"
        )

    def graph(self, sql: str, parallelism: int = 1, options: Mapping[str, str] = {}) -> JobGraph:
        """The job of a query."""
        zone = {LOCAL_TIME_ZONE.key: session_zone(self.environment.configuration)}
        layer = zone | {"parallelism.default": str(parallelism)} | dict(options)
        configuration = self.environment.configuration.with_layer(layer)
        source = Source(sql)
        bound = bind_statement(parse_statement(source), BindContext(self.environment.catalogs, configuration, source))
        assert isinstance(bound, op.Query)
        return Planner(configuration).plan_query(bound, object())


@dataclass(frozen=True)
class Verdict:
    """What a plan says of a pair, and what is wrong with the answer; "" where nothing is."""

    fates: frozenset[Fate]
    wrong: str


def judge(pair: Pair, folder: Path, old: Session, new: Session, draw: random.Random) -> Verdict:
    """Restore the edit from a savepoint of the query, if the plan says that all state is kept.

    The changes from the restore on are those that the edit makes of the same rows. Where nothing was edited that stands
    above the state, both parts together are the answer of the edit to all rows.
    """
    position = draw.randrange(1, ROWS)
    parallelism = (1, draw.choice((1, 1, 2)))
    before, after = old.graph(pair.old), new.graph(pair.new, parallelism[1])
    remembered = remembered_of(before)
    changes = compare(remembered, with_late_calls(remembered, after))
    fates = frozenset(one.fate for one in changes)
    backend = {"state.backend.type": draw.choice(("hashmap", "rocksdb"))}
    if fates - {Fate.KEPT}:
        return Verdict(fates, _allowed(pair, folder, (old, new), changes, parallelism, position, backend))

    def cut(first: Session, sql: str, name: str) -> Any:
        graphs = itertools.count()

        def make(parallel: int) -> JobGraph:
            return first.graph(sql, parallel, backend) if next(graphs) == 0 else new.graph(pair.new, parallel, backend)

        return run_cut(make, parallelism, position, folder=folder / name)

    found, wanted = cut(old, pair.old, "edited"), cut(new, pair.new, "same")
    if net(found.after["collect"]) != net(wanted.after["collect"]):
        return Verdict(fates, _apart(net(found.after["collect"]), net(wanted.after["collect"])))
    if not pair.shown:
        table = net(run_whole(new.graph(pair.new))["collect"])
        if net(found.rows("collect")) != table:
            return Verdict(fates, "with what came before: " + _apart(net(found.rows("collect")), table))
    return Verdict(fates, "")


def _allowed(
    pair: Pair,
    folder: Path,
    sessions: tuple[Session, Session],
    changes: Iterable[Change],
    parallelism: tuple[int, int],
    position: int,
    backend: Mapping[str, str],
) -> str:
    """What is allowed runs to its end."""
    rebuilt = any(one.fate is Fate.REBUILT for one in changes)
    options = {**backend, CHANGED_STATE.key: "rebuild" if rebuilt else "migrate", IGNORE_UNCLAIMED.key: "true"}
    graphs = iter((sessions[0].graph(pair.old, 1, options), sessions[1].graph(pair.new, parallelism[1], options)))
    run_cut(lambda _: next(graphs), parallelism, position, folder=folder / "allowed")
    return ""


def net(changes: Iterable[tuple[Any, ...]]) -> Counter[Hashable]:
    """What changes come to: rows that come count up, rows that go count down."""
    net: Counter[Hashable] = Counter()
    for kind, *values in changes:
        net[_frozen(values)] += 1 if kind in ("+I", "+U") else -1
    return Counter({row: count for row, count in net.items() if count})


def _frozen(value: Any) -> Hashable:
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple(sorted(((name, _frozen(item)) for name, item in value.items()), key=str))
    return round(value, 9) if isinstance(value, float) else value


def _apart(found: Counter[Hashable], wanted: Counter[Hashable]) -> str:
    rows = sorted({*found, *wanted}, key=str)
    apart = [f"{row}: {found[row]}, not {wanted[row]}" for row in rows if found[row] != wanted[row]]
    return "; ".join(apart[:5])
