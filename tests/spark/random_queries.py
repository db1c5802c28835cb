"""Random bounded queries through the three homes of the parity runner, tables compared.

    python tests/spark/random_queries.py [COUNT] [SEED]

Two tables (csv, and parquet that Spark reads by itself) with many NULLs and few values, so that keys meet; every query
is one that Flink's grammar has. What a home refuses it does not answer; two answers that differ are a fault of one.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq

TABLES = """
CREATE TABLE a (k INT, g STRING, n BIGINT, p DECIMAL(8, 2), d DATE, t TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = '{folder}/a.csv', 'format' = 'csv', 'csv.null-literal' = '');
CREATE TABLE b (k BIGINT, g STRING, m SMALLINT, q DECIMAL(6, 3), s STRING)
WITH ('connector' = 'filesystem', 'path' = '{folder}/b.parquet', 'format' = 'parquet');
"""
TYPES_OF_B = (pa.int64(), pa.string(), pa.int16(), pa.decimal128(6, 3), pa.string())
NUMBERS = {"a": ("k", "n", "p"), "b": ("k", "m", "q")}
TEXTS = {"a": ("g",), "b": ("g", "s")}
OTHERS = {"a": ("d", "t"), "b": ()}


def parity_runner() -> ModuleType:
    """The module that stands beside this one."""
    found = sys.modules.get("parity")
    if found is not None:
        return found
    spec = importlib.util.spec_from_file_location("parity", Path(__file__).with_name("parity.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["parity"] = module
    spec.loader.exec_module(module)
    return module


def make_files(folder: Path, seed: int) -> None:
    draw = random.Random(seed)

    def some(value: object) -> object:
        return None if draw.random() < 0.2 else value

    def maybe(value: object) -> object:
        return "" if draw.random() < 0.2 else value

    a = [
        f"{maybe(draw.randrange(6))},{maybe(draw.choice('xyzä'))},{maybe(draw.randrange(-9, 10))},"
        f"{maybe(draw.randrange(-500, 900) / 100)},{maybe(f'2020-0{draw.randrange(1, 4)}-01')},"
        f"{maybe(f'2020-01-0{draw.randrange(1, 4)} 0{draw.randrange(3)}:00:00.500')}"
        for _ in range(24)
    ]
    b = [
        (
            some(draw.randrange(2, 9)),
            some(draw.choice("xyq")),
            some(draw.randrange(-3, 4)),
            some(Decimal(draw.randrange(-2000, 3000)).scaleb(-3)),
            some(draw.choice(["x", "Xy", " z", "äö"])),
        )
        for _ in range(15)
    ]
    (folder / "a.csv").write_text("\n".join(a) + "\n", encoding="utf-8")
    columns = [pa.array(values, type_) for values, type_ in zip(zip(*b, strict=True), TYPES_OF_B, strict=True)]
    pq.write_table(pa.table(columns, names=["k", "g", "m", "q", "s"]), folder / "b.parquet")


class Queries:
    """Draws queries."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def _pick(self, *choices: str) -> str:
        return self._draw.choice(choices)

    def number(self, table: str, depth: int = 1) -> str:
        """A number over one row."""
        column = f"{table}.{self._pick(*NUMBERS[table])}"
        if depth == 0 or self._draw.random() < 0.4:
            return column
        below = self.number(table, depth - 1)
        return self._pick(
            f"({column} + {below})", f"({column} - {below})", f"({column} * 2)", f"-{column}", f"ABS({column})",
            f"COALESCE({column}, 0)", f"NULLIF({column}, 1)", f"CASE WHEN {self.test(table, 0)} THEN {column} END",
            f"CAST({column} AS DECIMAL(10, 1))", f"CHAR_LENGTH({self.text(table)})", f"({column} / 2)",
        )  # fmt: skip

    def text(self, table: str) -> str:
        """A text over one row."""
        column = f"{table}.{self._pick(*TEXTS[table])}"
        return self._pick(column, column, f"UPPER({column})", f"SUBSTRING({column}, 1, 1)", f"CONCAT({column}, '-')",
                          f"COALESCE({column}, 'none')")  # fmt: skip

    def test(self, table: str, depth: int = 1) -> str:
        """A condition over one row."""
        if depth and self._draw.random() < 0.4:
            joined = self._pick(" AND ", " OR ")
            made = f"({self.test(table, 0)}{joined}{self.test(table, 0)})"
            return self._pick(made, f"NOT {made}")
        number = self.number(table, 0)
        return self._pick(
            f"{number} > {self._draw.randrange(-2, 5)}", f"{number} IS NULL", f"{number} IS NOT NULL",
            f"{number} BETWEEN 0 AND 4", f"{self.text(table)} = 'x'", f"{self.text(table)} LIKE '%x%'",
            f"{number} IN (1, 2, 5)", f"{number} IS DISTINCT FROM 2",
        )  # fmt: skip

    def key(self, table: str) -> str:
        """Something to group or to partition by."""
        columns = [f"{table}.{name}" for name in (*TEXTS[table], *OTHERS[table], "k")]
        return self._pick(*columns, self.text(table), f"COALESCE({table}.k, -1)")

    def query_condition(self, table: str, other: str) -> str:
        """A condition that asks a query."""
        inner = f"FROM {other} AS i WHERE {self.test(other, 0).replace(f'{other}.', 'i.')}"
        key = f"{table}.k"
        return self._pick(
            f"{key} IN (SELECT i.k {inner})", f"{key} NOT IN (SELECT i.k {inner})",
            f"EXISTS (SELECT 1 {inner} AND i.k = {key})", f"NOT EXISTS (SELECT 1 {inner} AND i.g = {table}.g)",
            f"{key} > (SELECT MIN(i.k) {inner})", f"{key} = (SELECT MAX(i.k) {inner} AND i.g = {table}.g)",
            f"({key} IN (SELECT i.k {inner}) OR {table}.g = 'y')",
        )  # fmt: skip

    def aggregate(self, table: str) -> str:
        """An aggregate over a group."""
        number = self.number(table)
        call = self._pick(
            "COUNT(*)", f"COUNT({number})", f"SUM({number})", f"AVG({number})", f"MIN({number})", f"MAX({number})",
            f"COUNT(DISTINCT {self.text(table)})", f"SUM(DISTINCT {number})", f"MIN({self.text(table)})",
            f"STDDEV_POP({table}.k)",
        )  # fmt: skip
        return f"{call} FILTER (WHERE {self.test(table, 0)})" if self._draw.random() < 0.25 else call

    def source(self) -> tuple[str, str]:
        """FROM and WHERE, and the table that is always there."""
        table = self._pick("a", "b")
        other = "b" if table == "a" else "a"
        where = self._pick(self.test(table), self.query_condition(table, other), "TRUE")
        if self._draw.random() < 0.5:
            return f"FROM {table} WHERE {where}", table
        kind = self._pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        on = self._pick("a.k = b.k", "a.g = b.g", "a.k = b.k AND a.g = b.g", "a.k < b.k", "UPPER(a.g) = UPPER(b.g)",
                        f"a.k = b.k AND {self.test('b', 0)}")  # fmt: skip
        return f"FROM a {kind} b ON {on} WHERE {where}", table

    def window(self, table: str) -> str:
        """A window function whose answer does not hang on the order of equal rows."""
        partition = f"PARTITION BY {self.key(table)}"
        call = f"{self._pick('SUM', 'COUNT', 'MIN', 'MAX', 'AVG')}({self.number(table)})"
        order = f"ORDER BY {table}.k {self._pick('', 'DESC', 'NULLS LAST')}"
        return self._pick(
            f"{call} OVER ({partition})", f"{call} OVER ({partition} {order})", f"RANK() OVER ({partition} {order})",
            f"DENSE_RANK() OVER ({order})", f"PERCENT_RANK() OVER ({partition} {order})",
            f"COUNT(*) OVER ({order} RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING)",
        )  # fmt: skip

    def query(self) -> str:
        """One query."""
        source, table = self.source()
        match self._draw.randrange(5):
            case 0:
                return f"SELECT {self.number(table)} AS x, {self.text(table)} AS y, {self.test(table)} AS z {source}"
            case 1:
                keys = list(dict.fromkeys([self.key(table), self.key(table)]))
                listed = ", ".join(keys)
                grouped = self._pick(listed, f"ROLLUP ({listed})", f"CUBE ({listed})")
                having = self._pick("", f" HAVING COUNT(*) > {self._draw.randrange(3)}")
                named = ", ".join(f"{key} AS k{place}" for place, key in enumerate(keys))
                calls = ", ".join(f"{self.aggregate(table)} AS x{place}" for place in range(3))
                return f"SELECT {named}, {calls} {source} GROUP BY {grouped}{having}"
            case 2:
                return f"SELECT {table}.k AS k, {self.window(table)} AS x, {self.window(table)} AS y {source}"
            case 3:
                operation = self._pick("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
                return f"SELECT a.k, a.g FROM a WHERE {self.test('a')} {operation} SELECT b.k, b.g FROM b"
            case _:
                inner = f"SELECT {self.key(table)} AS h, {self.aggregate(table)} AS x {source}"
                grouped = inner.replace("SELECT ", "", 1).partition(" AS h,")[0]
                key = "UPPER(CAST(h AS STRING))"
                below = f"({inner} GROUP BY {grouped})"
                return f"SELECT {key} AS h, COUNT(*) AS n, MAX(x) AS x FROM {below} GROUP BY {key}"


def script(folder: Path, count: int, seed: int) -> str:
    """Tables and queries."""
    make_files(folder, seed)
    draw = Queries(seed)
    return TABLES.format(folder=folder) + "".join(f"{draw.query()};\n" for _ in range(count))


def main(words: Sequence[str]) -> int:
    """Compare, and tell."""
    count = int(words[0]) if words else 100
    seed = int(words[1]) if len(words) > 1 else random.randrange(1 << 30)
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    parity = parity_runner()
    compared: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    wrong = asked = 0
    with tempfile.TemporaryDirectory() as folder:
        for answers in parity.Parity().run(script(Path(folder), count, seed)):
            asked += 1
            compared.update(answers.rows.keys())
            if "spark" in answers.refusals:
                refused[answers.refusals["spark"]] += 1
            for difference in answers.differences():
                wrong += 1
                print(f"seed {seed}: {difference}\n    {answers.sql}", flush=True)
    for reason, times in refused.most_common():
        print(f"{times} x {reason}")
    print(f"seed {seed}: {asked} queries; answered by {dict(compared)}; {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
