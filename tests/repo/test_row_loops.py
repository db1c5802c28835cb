"""On SQL paths no Python runs once a row. What looks as if it did is listed here, each with the reason why it may."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("runtime/flowsql_runtime", "runtime/flowsql_compute", "connectors/flowsql_connectors")
#: Functions of users get Python values, row by row; and what tests are written with.
ROW_WISE: Final = (
    "runtime/flowsql_runtime/python",
    "runtime/flowsql_runtime/stream",
    "runtime/flowsql_runtime/testing",
)

#: Calls that make Python values of a whole column.
WHOLE: Final = {"to_pylist", "to_numpy", "to_pandas"}
#: Calls that make one or many of them, where they stand in a loop or are what a loop runs over.
IN_LOOPS: Final = {"as_py"}
LOOPED_OVER: Final = {"tolist"}

ARGUMENTS: Final = "over the distinct values of an argument, one pass of all rows each"

#: Module and function, and why it may.
ALLOWED: Final = {
    "flowsql_runtime/state/rocksdb/region:Region._bring": "over distinct namespaces",
    "flowsql_connectors/formats/line_encode:LineEncoder.prepare": "texts of streams in character sets but UTF-8",
    "flowsql_runtime/state/rocksdb/region:Region._count": "over distinct namespaces",
    "flowsql_runtime/state/rocksdb/region:Region._evict_all": "over distinct namespaces",
    "flowsql_runtime/state/rocksdb/buckets:Buckets.cut": "over buckets that hold too much",
    "flowsql_runtime/state/rocksdb/pages:PageFormat._written": "over pages of many keys",
    "flowsql_runtime/state/rocksdb/buckets:Buckets.written": "over buckets of many keys",
    "flowsql_runtime/time/timers:TimerService.register_processing_timers": "alarms of one operator, not rows",
    "flowsql_runtime/network/selector:HashSelector.select": "over channels",
    "flowsql_runtime/operators/sink/constraints:_measure_one": "behind a failure: names the length that broke",
    "flowsql_runtime/checkpoint/encode:encode_keyed": "over ranges of key groups",
    "flowsql_runtime/checkpoint/encode:decode_operator": "over elements of operator state, at a restore",
    "flowsql_runtime/checkpoint/encode:decode_in_flight": "over batches that were in flight, at a restore",
    "flowsql_runtime/state/object_store:packed": "snapshots of state that holds Python objects",
    "flowsql_compute/eval/compile:_Frame.blame": "behind a failure: names the row",
    "flowsql_compute/eval/distinct:map_distinct": "over distinct values: functions without a kernel",
    "flowsql_compute/eval/distinct:map_rows": "over distinct combinations: functions without a kernel",
    "flowsql_compute/eval/java/date_pattern:_Fields.rows": "over distinct moments: letters without a kernel",
    "flowsql_compute/eval/json/document:Documents.__init__": "over distinct documents that kernels left over",
    "flowsql_compute/eval/nested/map_order:text_order": "over the keys of one document, by the exact rules",
    "flowsql_compute/eval/text/format:decode_utf8": "over distinct values, where some bytes are malformed",
    "flowsql_compute/eval/text/parse:_decimals": "over distinct values of texts that Arrow does not cast",
    "flowsql_compute/eval/text/render:json_strings": "over characters to escape, one pass each",
    "flowsql_compute/eval/text/render:over_distinct": "over distinct values: notations without a kernel",
    "flowsql_compute/functions/collections/structured:object_update": "over constant arguments",
    "flowsql_compute/functions/json/read:_by_path": ARGUMENTS,
    "flowsql_compute/functions/json/write:json_object": "over constant arguments",
    "flowsql_compute/functions/math:_rounded": ARGUMENTS,
    "flowsql_compute/functions/text/digest:sha2": ARGUMENTS,
    "flowsql_compute/functions/text/edit:_trimmed": ARGUMENTS,
    "flowsql_compute/functions/text/edit:overlay": "over the arguments of the call",
    "flowsql_compute/functions/text/printf:_formatted": "over constant arguments",
    "flowsql_compute/functions/text/printf:printf": ARGUMENTS,
    "flowsql_compute/functions/text/regex_search:_all_of_constant": "over distinct values: patterns without a kernel",
    "flowsql_compute/functions/text/string:_without_overlaps": "over matches of a mark that overlaps itself (``aa``)",
    "flowsql_compute/functions/text/string:split_index": ARGUMENTS,
    "flowsql_compute/functions/time/patterns:_by_pattern": ARGUMENTS,
    "flowsql_compute/functions/time/patterns:convert_tz": ARGUMENTS,
    "flowsql_compute/functions/time/patterns:to_timestamp_ltz": ARGUMENTS,
    "flowsql_compute/functions/time/patterns:to_timestamp_ltz_text": ARGUMENTS,
    "flowsql_connectors/filesystem/partition:Partitioner._level": "over distinct values: folders",
    "flowsql_connectors/filesystem/partition:Partitioner.group": "over the folders of a batch",
    "flowsql_connectors/formats/csv_decode:CsvDecoder._dubious": "over columns: their extremes",
    "flowsql_connectors/formats/csv_decode:CsvDecoder._may_hold_blank_lines": "over columns: their extremes",
    "flowsql_connectors/formats/csv_encode:CsvEncoder.head": "over the names of columns, once a file",
    "flowsql_connectors/formats/csv_odd_rows:part_rows": "over odd rows, and runs between them",
    "flowsql_connectors/formats/csv_odd_rows:put_between": "over at most 256 odd rows",
    "flowsql_connectors/formats/text_values:_parse_distinct": "over distinct values of texts that Arrow does not cast",
}


class _Finder(ast.NodeVisitor):
    """Functions, by qualified name, that make Python values of columns."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self._names: list[str] = []
        self._loops = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        loops, self._loops = self._loops, 0
        self._inside(node)
        self._loops = loops

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node)

    def _inside(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        self._names.append(node.name)
        self.generic_visit(node)
        self._names.pop()

    def visit_For(self, node: ast.For) -> None:
        self._looped_over(node.iter)
        self.visit(node.iter)
        self._in_loop([*node.body, *node.orelse])

    def visit_While(self, node: ast.While) -> None:
        self._in_loop([node.test, *node.body, *node.orelse])

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node.generators, [node.elt])

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension(node.generators, [node.elt])

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node.generators, [node.elt])

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node.generators, [node.key, node.value])

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in WHOLE or (name in IN_LOOPS and self._loops):
                self.found.add(".".join(self._names))
        self.generic_visit(node)

    def _comprehension(self, generators: list[ast.comprehension], made: list[ast.expr]) -> None:
        for generator in generators:
            self._looped_over(generator.iter)
        self.visit(generators[0].iter)
        rest = [part for generator in generators for part in (generator.target, *generator.ifs)]
        self._in_loop([*rest, *(generator.iter for generator in generators[1:]), *made])

    def _looped_over(self, iterated: ast.expr) -> None:
        calls = (node for node in ast.walk(iterated) if isinstance(node, ast.Call))
        if any(isinstance(call.func, ast.Attribute) and call.func.attr in LOOPED_OVER for call in calls):
            self.found.add(".".join(self._names))

    def _in_loop(self, nodes: list[ast.AST]) -> None:
        self._loops += 1
        for node in nodes:
            self.visit(node)
        self._loops -= 1


def _found() -> Iterator[str]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(ROW_WISE):
                finder = _Finder()
                finder.visit(ast.parse(path.read_text(encoding="utf-8")))
                module = name.removesuffix(".py").split("/", 1)[1]
                yield from (f"{module}:{function}" for function in sorted(finder.found))


def test_columns_become_python_values_only_where_it_is_said_why() -> None:
    """A new one is written with Arrow or kernels; or it is over distinct values, odd rows, or behind a failure."""
    assert sorted(set(_found()) - set(ALLOWED)) == []


def test_no_reason_outlives_its_loop() -> None:
    assert sorted(set(ALLOWED) - set(_found())) == []
