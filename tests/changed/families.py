"""Random queries and edits of them: a family is a query with parameters, an edit changes one or two of them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

Parameters = Mapping[str, str]


@dataclass(frozen=True)
class Family:
    """One query.

    Args:
        text: the query of parameters.
        choices: by parameter its values.
        shown: parameters of what stands above the state (columns and conditions of the answer): results from before
            the restore stay as the old query gave them.
    """

    name: str
    text: Callable[[Parameters], str]
    choices: Mapping[str, tuple[str, ...]]
    shown: frozenset[str] = frozenset()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pair:
    """A query and its edit. ``shown``: what stands above the state was edited, too."""

    family: str
    old: str
    new: str
    edited: tuple[str, ...]
    shown: bool
    options: Mapping[str, str]


_FILTERS: Final = ("TRUE", "v > 3", "v > 5", "s <> 'b'", "v > 3 AND s <> 'b'")
_KINDS: Final = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
_CALLS: Final = (
    "COUNT(*)",
    "SUM(v)",
    "AVG(v)",
    "MAX(v)",
    "MIN(v), SUM(v)",
    "COUNT(v), MAX(v)",
    "MAX(s)",
    "COUNT(DISTINCT v)",
    "COUNT(DISTINCT s), COUNT(*)",
    "SUM(v) FILTER (WHERE s = 'a')",
    "LISTAGG(s)",
    "FIRST_VALUE(v), LAST_VALUE(s)",
    "STDDEV_POP(v)",
    "SUM(d), MIN(d)",
)
#: Rows that come and go: one of each ``k``, and one of each ``k`` and ``j``.
_INPUTS: Final = (
    "a",
    "(SELECT k, MIN(j) AS j, COUNT(*) AS v, MAX(s) AS s, SUM(d) AS d FROM a GROUP BY k)",
    "(SELECT k, j, SUM(v) AS v, MAX(s) AS s, MAX(d) AS d FROM a GROUP BY k, j)",
)


def _two(calls: tuple[str, ...]) -> tuple[str, ...]:
    return (*calls, *(f"{one}, {other}" for one, other in itertools.pairwise(calls)))


def _group(p: Parameters) -> str:
    having = "" if p["having"] == "TRUE" else f" HAVING {p['having']}"
    keys = p["keys"]
    shown = ", ".join(sorted(keys.split(", "), reverse=True)) if "," in keys else keys
    return f"SELECT {shown}, {p['calls']} FROM {p['input']} WHERE {p['filter']} GROUP BY {keys}{having}"


def _join(p: Parameters) -> str:
    left = f"(SELECT * FROM {p['left']} WHERE {p['filter']})"
    on = f"x.k = y.k AND {p['on']}"
    return f"SELECT {p['columns']} FROM {left} x {p['kind']} {p['right']} y ON {on} WHERE {p['where']}"


def _semi(p: Parameters) -> str:
    below = f"SELECT y.j FROM {p['right']} y WHERE y.k = x.k AND {p['on']}"
    return f"SELECT x.k, x.v, x.s FROM {p['left']} x WHERE {p['kind']} ({below})"


def _three(p: Parameters) -> str:
    return (
        f"SELECT x.id, y.id AS i2, z.v FROM a x {p['kind']} b y ON x.k = y.k AND {p['on']} "
        f"{p['kind2']} {p['third']} z ON z.k = x.k AND {p['on2']}"
    )


def _interval(p: Parameters) -> str:
    bounds = f"x.ts BETWEEN y.ts - INTERVAL '{p['lower']}' SECOND AND y.ts + INTERVAL '{p['upper']}' SECOND"
    return f"SELECT x.id, x.v, y.id AS i2 FROM a x {p['kind']} b y ON x.k = y.k AND {bounds} AND {p['on']}"


def _temporal(p: Parameters) -> str:
    return (
        f"SELECT x.id, y.v, y.s FROM {p['left']} x {p['kind']} versions FOR SYSTEM_TIME AS OF x.ts AS y "
        f"ON x.k = y.k AND {p['on']} WHERE {p['where']}"
    )


def _windows(p: Parameters) -> str:
    return (
        f"SELECT window_start, window_end, {p['keys']}, {p['calls']} "
        f"FROM TABLE({p['window'].format('(SELECT * FROM a WHERE ' + p['filter'] + ')')}) "
        f"GROUP BY window_start, window_end, {p['keys']}"
    )


_WINDOWS: Final = (
    "TUMBLE(DATA => {}, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' SECOND)",
    "TUMBLE(DATA => {}, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '20' SECOND)",
    "TUMBLE(DATA => {}, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' SECOND, `OFFSET` => INTERVAL '3' SECOND)",
    "HOP(DATA => {}, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '5' SECOND, SIZE => INTERVAL '10' SECOND)",
    "HOP(DATA => {}, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '10' SECOND, SIZE => INTERVAL '20' SECOND)",
    "CUMULATE(DATA => {}, TIMECOL => DESCRIPTOR(ts), STEP => INTERVAL '5' SECOND, SIZE => INTERVAL '20' SECOND)",
    "SESSION(DATA => {}, TIMECOL => DESCRIPTOR(ts), GAP => INTERVAL '2' SECOND)",
    "SESSION(DATA => {}, TIMECOL => DESCRIPTOR(ts), GAP => INTERVAL '3' SECOND)",
)


def _window_join(p: Parameters) -> str:
    def windowed(table: str) -> str:
        return f"(SELECT * FROM TABLE({p['window'].format('TABLE ' + table)}))"

    columns = "x.id, x.v" if p["kind"] in ("SEMI", "ANTI") else "x.id, x.v, y.id AS i2"
    same = "x.window_start = y.window_start AND x.window_end = y.window_end"
    if p["kind"] in ("SEMI", "ANTI"):
        word = "EXISTS" if p["kind"] == "SEMI" else "NOT EXISTS"
        below = f"SELECT 1 FROM {windowed('b')} y WHERE {same} AND x.k = y.k AND {p['on']}"
        return f"SELECT {columns} FROM {windowed('a')} x WHERE {word} ({below})"
    return (
        f"SELECT {columns} FROM {windowed('a')} x {p['kind']} {windowed('b')} y ON {same} AND x.k = y.k AND {p['on']}"
    )


def _window_rank(p: Parameters) -> str:
    numbered = ", rn" if p["numbered"] == "yes" else ""
    return (
        f"SELECT window_end, id, v{numbered} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, "
        f"k ORDER BY {p['order']}) AS rn FROM TABLE({p['window'].format('TABLE a')})) WHERE rn {p['places']}"
    )


def _over(p: Parameters) -> str:
    over = f"(PARTITION BY {p['keys']} ORDER BY {p['order']} {p['frame']})"
    lag = f"(PARTITION BY {p['keys']} ORDER BY {p['order']})"
    calls = [f"{call} OVER {lag if call.startswith('LAG') else over}" for call in p["calls"].split("; ")]
    if p["frame"]:
        calls = [call for call in calls if not call.startswith("LAG")] or [f"COUNT(v) OVER {over}"]
    named = ", ".join(f"{call} AS c{place}" for place, call in enumerate(calls))
    return f"SELECT id, k, {named} FROM {p['input']} WHERE {p['filter']}"


def _rank(p: Parameters) -> str:
    numbered = ", rn" if p["numbered"] == "yes" else ""
    return (
        f"SELECT k, v, s{numbered} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {p['keys']} ORDER BY {p['order']}) "
        f"AS rn FROM {p['input']} WHERE {p['filter']}) WHERE rn {p['places']}"
    )


def _first(p: Parameters) -> str:
    return (
        f"SELECT id, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {p['keys']} ORDER BY {p['order']}) AS rn "
        f"FROM a WHERE {p['filter']}) WHERE rn = 1"
    )


def _limit(p: Parameters) -> str:
    return f"SELECT id, k, v FROM a WHERE {p['filter']} ORDER BY {p['order']} {p['limit']}"


def _match(p: Parameters) -> str:
    within = f" WITHIN INTERVAL '{p['within']}' SECOND" if p["within"] else ""
    return (
        f"SELECT * FROM (SELECT {p['below']} FROM a) MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
        f"MEASURES {p['measures']} ONE ROW PER MATCH AFTER MATCH {p['after']} "
        f"PATTERN ({p['pattern']}){within} DEFINE X AS {p['x']}, Y AS {p['y']})"
    )


def _set(p: Parameters) -> str:
    return (
        f"SELECT k, j FROM (SELECT k, j FROM a WHERE {p['filter']} {p['kind']} SELECT k, j FROM b WHERE {p['other']})"
    )


def _stock(p: Parameters) -> str:
    calls = p["calls"].replace("j", "id")
    if p["shape"] == "rows":
        return f"SELECT id, who, v FROM stock WHERE {p['filter']}"
    return f"SELECT who, {calls} FROM stock WHERE {p['filter']} GROUP BY who"


def _group_window(p: Parameters) -> str:
    return f"SELECT k, {p['calls']} FROM a WHERE {p['filter']} GROUP BY k, {p['window']}"


def _above(p: Parameters) -> str:
    """State above a join, a ranking or an OVER window: what is asked where."""
    match p["shape"]:
        case "outer":
            on = f"x.k = y.k AND x.id = y.id AND {p['on']}"
            rows = f"SELECT x.k, y.v FROM a x {p['kind']} b y ON {on} WHERE {p['where']}"
            return f"SELECT k, COUNT(*), SUM(v) FROM ({rows}) GROUP BY k"
        case "rank":
            rows = f"SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k, j ORDER BY id DESC) AS rn FROM a x WHERE {p['on']}"
            return (
                f"SELECT k, COUNT(*), SUM(v) FROM (SELECT * FROM ({rows}) WHERE rn < 3) x WHERE {p['where']} GROUP BY k"
            )
        case _:
            rows = f"SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS w FROM a x WHERE {p['on']}"
            return f"SELECT k, SUM(w) FROM ({rows}) x WHERE {p['where']} GROUP BY k"


_ON: Final = ("TRUE", "x.v < y.v", "x.v <= y.v", "x.v > 3", "y.v > 3", "x.s = y.s")

FAMILIES: Final = (
    Family(
        "group",
        _group,
        {
            "keys": ("k", "k, j", "j, k", "MOD(k, 2)"),
            "calls": _two(_CALLS),
            "input": _INPUTS,
            "filter": _FILTERS,
            "having": ("TRUE", "COUNT(*) > 2"),
        },
        frozenset({"calls", "having"}),
    ),
    Family(
        "group in mini-batches",
        _group,
        {
            "keys": ("k", "k, j"),
            "calls": _two(_CALLS[:9]),
            "input": _INPUTS,
            "filter": _FILTERS,
            "having": ("TRUE",),
        },
        frozenset({"calls"}),
        {
            "table.exec.mini-batch.enabled": "true",
            "table.exec.mini-batch.size": "7",
            "table.exec.mini-batch.allow-latency": "1 h",
        },
    ),
    Family(
        "join",
        _join,
        {
            "kind": _KINDS,
            "left": _INPUTS,
            "right": ("b", _INPUTS[2]),
            "on": _ON,
            "filter": _FILTERS,
            "where": ("TRUE", "x.j = 1", "x.v + y.v > 9"),
            "columns": ("x.k, x.v, y.v AS w, y.s", "y.s, x.v, x.k, y.v AS w", "x.k, x.v + y.v AS w, y.s"),
        },
        frozenset({"where", "columns"}),
    ),
    Family(
        "semi",
        _semi,
        {
            "kind": ("EXISTS", "NOT EXISTS", "x.j IN", "x.j NOT IN"),
            "left": _INPUTS,
            "right": ("b", _INPUTS[2]),
            "on": ("TRUE", "x.v < y.v", "x.v <= y.v", "y.v > 3", "y.v > 5"),
        },
    ),
    Family(
        "three",
        _three,
        {
            "kind": _KINDS[:2],
            "kind2": _KINDS[:2],
            "third": ("b", _INPUTS[2]),
            "on": ("x.j = y.j", "TRUE", "x.v < y.v"),
            "on2": ("x.j = z.j", "z.v > 3", "x.v < z.v"),
        },
        frozenset(),
        {"table.optimizer.multi-join.enabled": "true"},
    ),
    Family(
        "interval",
        _interval,
        {
            "kind": _KINDS,
            "lower": ("0", "3", "5", "8"),
            "upper": ("0", "3", "5", "8"),
            "on": ("TRUE", "x.v < y.v", "x.v <= y.v", "x.s = y.s"),
        },
    ),
    Family(
        "temporal",
        _temporal,
        {
            "kind": ("JOIN", "LEFT JOIN"),
            "left": ("a", "(SELECT * FROM a WHERE v > 3)"),
            "on": ("TRUE", "x.v < y.v", "y.v > 3"),
            "where": ("TRUE", "x.j = 1"),
        },
        frozenset({"where"}),
    ),
    Family(
        "windows",
        _windows,
        {"window": _WINDOWS, "keys": ("k", "k, j"), "calls": _two(_CALLS), "filter": _FILTERS},
        frozenset({"calls"}),
    ),
    Family(
        "window join",
        _window_join,
        {
            "kind": (*_KINDS, "SEMI", "ANTI"),
            "window": _WINDOWS[:5],
            "on": ("TRUE", "x.v < y.v", "x.v <= y.v", "y.v > 3"),
        },
    ),
    Family(
        "window rank",
        _window_rank,
        {
            "window": _WINDOWS[:4],
            "order": ("v", "v DESC", "ts", "ts DESC", "v, id"),
            "places": ("<= 2", "<= 3", "= 1", "BETWEEN 2 AND 3"),
            "numbered": ("yes", "no"),
        },
        frozenset({"numbered"}),
    ),
    Family(
        "over",
        _over,
        {
            "keys": ("k", "k, j"),
            "order": ("ts",),
            "frame": (
                "",
                "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
                "ROWS BETWEEN 3 PRECEDING AND CURRENT ROW",
                "RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW",
                "RANGE BETWEEN INTERVAL '9' SECOND PRECEDING AND CURRENT ROW",
            ),
            "calls": (
                "LAG(v, 1)",
                "LAG(v, 2)",
                "LAG(v, 3)",
                "LAG(v, 2, 7)",
                "LAG(s, 1)",
                "SUM(v); LAG(v, 1)",
                "SUM(v); COUNT(*)",
                "AVG(v)",
                "MAX(v); SUM(v)",
                "FIRST_VALUE(s)",
            ),
            "input": ("a",),
            "filter": _FILTERS,
        },
        frozenset({"calls"}),
    ),
    Family(
        "over values",
        _over,
        {
            "keys": ("k", "k, j"),
            "order": ("v", "s", "id"),
            "frame": ("ROWS UNBOUNDED PRECEDING", "RANGE UNBOUNDED PRECEDING"),
            "calls": ("SUM(v)", "COUNT(*)", "SUM(v); COUNT(*)", "AVG(v)"),
            "input": ("a",),
            "filter": _FILTERS,
        },
        frozenset({"calls"}),
    ),
    Family(
        "rank",
        _rank,
        {
            "keys": ("k", "k, j"),
            "order": ("v, s", "v DESC, s", "s, v", "d, v, s"),
            "places": ("<= 2", "<= 3", "= 1", "BETWEEN 2 AND 3", "BETWEEN 2 AND 4"),
            "numbered": ("yes", "no"),
            "input": _INPUTS,
            "filter": _FILTERS,
        },
        frozenset({"numbered"}),
    ),
    Family(
        "first",
        _first,
        {"keys": ("k", "k, j"), "order": ("ts", "ts DESC", "p", "p DESC"), "filter": _FILTERS},
    ),
    Family(
        "limit",
        _limit,
        {
            "order": ("v, id", "v DESC, id", "ts, id", "ts"),
            "limit": ("LIMIT 3", "LIMIT 5", "LIMIT 3 OFFSET 1"),
            "filter": _FILTERS,
        },
    ),
    Family(
        "match",
        _match,
        {
            "below": ("*", "id, k, ts, v, j, s", "id, k, ts, j, v, s"),
            "measures": ("FIRST(X.id) AS a, Y.id AS b", "Y.id AS b, SUM(X.v) AS s"),
            "after": ("SKIP PAST LAST ROW", "SKIP TO NEXT ROW"),
            "pattern": ("X+ Y", "X Y", "X+? Y", "X{2} Y"),
            "within": ("", "5", "9"),
            "x": ("X.v > 3", "X.j = 1", "X.v > 4"),
            "y": ("Y.v < 4", "Y.v < 5", "Y.v < LAST(X.v, 0)"),
        },
        frozenset({"measures"}),
    ),
    Family(
        "set",
        _set,
        {
            "kind": ("UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"),
            "filter": _FILTERS,
            "other": ("TRUE", "v > 3", "v < 7"),
        },
    ),
    Family(
        "stock",
        _stock,
        {
            "shape": ("rows", "groups"),
            "filter": ("TRUE", "v > 3", "v > 4", "who <> 'bob'"),
            "calls": ("COUNT(*)", "SUM(v)", "MAX(v)", "COUNT(v), SUM(v)", "MIN(j)"),
        },
        frozenset({"calls"}),
        {"table.exec.source.cdc-events-duplicate": "true"},
    ),
    Family(
        "group window",
        _group_window,
        {
            "calls": _two(_CALLS[:8]),
            "filter": _FILTERS,
            "window": (
                "TUMBLE(ts, INTERVAL '10' SECOND)",
                "TUMBLE(ts, INTERVAL '20' SECOND)",
                "HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
                "SESSION(ts, INTERVAL '2' SECOND)",
                "SESSION(ts, INTERVAL '3' SECOND)",
            ),
        },
        frozenset({"calls"}),
    ),
    Family(
        "above",
        _above,
        {
            "shape": ("outer", "rank", "over"),
            "kind": _KINDS,
            "on": ("TRUE", "x.v > 3", "x.k <> 2"),
            "where": ("TRUE", "x.v > 3", "x.k <> 2"),
        },
    ),
)


def draw_pair(draw: random.Random) -> Pair:
    """A random query and an edit of one or two of its parameters; now and then of none."""
    family = draw.choice(FAMILIES)
    old = {name: draw.choice(values) for name, values in family.choices.items()}
    new = dict(old)
    # Half of the edits are of what stands above the state: most others need to be allowed.
    names = sorted(family.shown if family.shown and draw.random() < 0.5 else family.choices)
    for name in draw.sample(names, min(len(names), draw.choice((0, 1, 1, 1, 1, 2, 2)))):
        new[name] = draw.choice(family.choices[name])
    edited = tuple(name for name in old if old[name] != new[name])
    return Pair(
        family.name,
        family.text(old),
        family.text(new),
        edited,
        any(name in family.shown for name in edited),
        family.options,
    )
