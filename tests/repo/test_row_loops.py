"""On SQL paths no Python runs once a row. What looks as if it did is listed here, each with the reason why it may."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("runtime/flowsql_runtime", "runtime/flowsql_compute", "connectors/flowsql_connectors")
#: Functions of users get Python values, row by row; and what tests are written with.
ROW_WISE: Final = (
    "runtime/flowsql_runtime/operators/process",
    "runtime/flowsql_runtime/operators/python_aggregate",
    "runtime/flowsql_runtime/python",
    "runtime/flowsql_runtime/stream",
    "runtime/flowsql_runtime/testing",
)

#: Calls that cut a text into rows, where a loop runs over what they give.
CUTS: Final = {"splitlines", "next_row"}

#: Calls that make Python values of a whole column.
WHOLE: Final = {"to_pylist", "to_numpy", "to_pandas"}
#: Calls that make one or many of them, where they stand in a loop or are what a loop runs over.
IN_LOOPS: Final = {"as_py"}
LOOPED_OVER: Final = {"tolist"}

ODD: Final = "over odd rows: tests/connectors/test_bulk_paths sees that there are no others"
ARGUMENTS: Final = "over the distinct values of an argument, one pass of all rows each"
CLIENT: Final = "Kafka's client library takes a Python object a record"
TOPICS: Final = "over distinct topics"
HEADERS: Final = "headers of Kafka's records, where a query asks for them"
CLIENTS: Final = "the client library takes and gives Python objects, one a key, document or message"

#: Module and function, and why it may.
ALLOWED: Final = {
    "flowsql_connectors/memory/store:KeptRows._last_of_keys": "over batches of changes",
    "flowsql_connectors/cdc/mysql/expand:expanded": "over compressed events, each of which has many rows",
    "flowsql_connectors/cdc/mysql/log:MySqlLog.places": "over distinct keys, which the server is asked about",
    "flowsql_connectors/cdc/mysql/stream:BinlogStream.read": "over events, each of which has many rows",
    "flowsql_connectors/jdbc/arrays:client_values": "client libraries that take rows as Python values",
    "flowsql_connectors/jdbc/alchemy/values:parameters": "drivers that take rows as Python values",
    "flowsql_connectors/datagen/realistic:_faker": "distinct values that are made once, before the first row",
    "flowsql_runtime/state/rocksdb/cold_entries:cold_object_tables": "state that holds Python objects",
    "flowsql_runtime/state/rocksdb/native_snapshot:_buckets_by_index": "over numbers of buckets, at a restore",
    "flowsql_runtime/state/rocksdb/native_snapshot:_keys_in_pieces": "keys as bytes, at a restore",
    "flowsql_runtime/state/rocksdb/region:Region._bring": "over distinct namespaces",
    "flowsql_connectors/formats/line_encode:LineEncoder.prepare": "texts of streams in character sets but UTF-8",
    "flowsql_runtime/state/rocksdb/region:Region._count": "over distinct namespaces",
    "flowsql_runtime/state/rocksdb/region:Region._evict_all": "over distinct namespaces",
    "flowsql_runtime/state/rocksdb/buckets:Buckets.cut": "over buckets that hold too much",
    "flowsql_runtime/state/rocksdb/pages:PageFormat._written": "over pages of many keys",
    "flowsql_runtime/state/rocksdb/buckets:Buckets.written": "over buckets of many keys",
    "flowsql_runtime/time/timers:TimerService.register_processing_timers": "alarms of one operator, not rows",
    "flowsql_runtime/network/selector:HashSelector.select": "over channels",
    "flowsql_runtime/operators/bounded/held_rows:DealtRows.add": "over the files that rows are dealt out to",
    "flowsql_runtime/operators/bounded/sorted_rows:merged": "over sorted runs",
    "flowsql_runtime/operators/values:literal_column": "over the rows that stand in the text of a query",
    "flowsql_runtime/spark/sessions/shipping:look_at_executors": "over executors",
    "flowsql_runtime/spark/streaming/packed:unpacked": "over batches that pass between stages, a row each",
    "flowsql_runtime/spark/tasks:ReadParts.__call__": "over numbers of parts of a table, one a task",
    "flowsql_runtime/spark/tasks:WriteRows.__call__": "over batches, and over files that a task wrote",
    "flowsql_runtime/reading/columns:ReadableState._column": "accumulators of Python functions, where asked for",
    "flowsql_runtime/reading/columns:ReadableState._keyless": "over entries of operator state, that a query reads",
    "flowsql_runtime/reading/columns:ReadableState._of_rows": "over state that holds Python objects",
    "flowsql_runtime/checkpoint/encode:encode_operator": "over elements of operator state",
    "flowsql_runtime/operators/sink/constraints:_measure_one": "behind a failure: names the length that broke",
    "flowsql_runtime/checkpoint/encode:encode_keyed": "over ranges of key groups",
    "flowsql_runtime/checkpoint/encode:decode_operator": "over elements of operator state, at a restore",
    "flowsql_runtime/checkpoint/encode:decode_in_flight": "over batches that were in flight, at a restore",
    "flowsql_runtime/state/object_store:packed": "snapshots of state that holds Python objects",
    "flowsql_compute/eval/compile:_Frame.blame": "behind a failure: names the row",
    "flowsql_compute/eval/distinct:map_distinct": "over distinct values: functions without a kernel",
    "flowsql_compute/eval/distinct:map_rows": "over distinct combinations: functions without a kernel",
    "flowsql_compute/eval/java/date_pattern:_format_all": "over distinct moments: letters without a kernel",
    "flowsql_compute/eval/java/date_pattern:_Fields.rows": "over distinct moments: letters without a kernel",
    "flowsql_compute/eval/json/document:Documents.__init__": "over distinct documents that kernels left over",
    "flowsql_compute/eval/nested/map_order:text_order": "over the keys of one document, by the exact rules",
    "flowsql_compute/eval/cast:_doubles_to_decimal": "over distinct numbers that doubles cannot scale without rounding",
    "flowsql_compute/eval/text/format:without_digits": "over distinct numbers of digits",
    "flowsql_compute/eval/text/format:decode_utf8": "over distinct values, where some bytes are malformed",
    "flowsql_compute/eval/text/format:double_text": "over distinct values that Java spells otherwise than Arrow",
    "flowsql_compute/eval/text/parse:_decimals": "over distinct values of texts that Arrow does not cast",
    "flowsql_compute/eval/text/render:json_texts": "over characters to escape, one pass each",
    "flowsql_compute/eval/text/render:_render_objects": "over Python objects, of which no column is made before",
    "flowsql_compute/eval/text/render:over_distinct": "over distinct values: notations without a kernel",
    "flowsql_compute/functions/collections/structured:object_update": "over constant arguments",
    "flowsql_compute/functions/json/read:_by_path": ARGUMENTS,
    "flowsql_compute/functions/json/write:json_object": "over constant arguments",
    "flowsql_compute/functions/math:_rounded": ARGUMENTS,
    "flowsql_compute/functions/text/digest:sha2": ARGUMENTS,
    "flowsql_compute/functions/text/edit:_trimmed": ARGUMENTS,
    "flowsql_compute/functions/text/inet:inet_ntoa": "over 256 numbers",
    "flowsql_compute/functions/text/printf:_formatted": "over constant arguments",
    "flowsql_compute/functions/text/printf:printf": ARGUMENTS,
    "flowsql_compute/functions/text/regex_search:_all_groups": "over distinct values: patterns without a kernel",
    "flowsql_compute/functions/text/regex:_like_rows": "over distinct patterns",
    "flowsql_compute/functions/text/regex:by_pattern": "over distinct patterns",
    "flowsql_compute/functions/text/string:_without_overlaps": "over matches of a mark that overlaps itself (``aa``)",
    "flowsql_compute/functions/text/string:split_index": ARGUMENTS,
    "flowsql_compute/functions/time/patterns:_by_pattern": ARGUMENTS,
    "flowsql_compute/functions/time/patterns:convert_tz": ARGUMENTS,
    "flowsql_compute/functions/time/patterns:to_timestamp_ltz": ARGUMENTS,
    "flowsql_compute/functions/time/patterns:to_timestamp_ltz_text": ARGUMENTS,
    "flowsql_connectors/filesystem/partitions/folders:Partitioner._level": "over distinct values: folders",
    "flowsql_connectors/lakes/delta/commit:_removed": "over the data files of a table",
    "flowsql_connectors/lakes/delta/history:DeltaHistory._added": "over the actions of a commit",
    "flowsql_connectors/lakes/delta/history:DeltaHistory._whole": "over the data files of a table",
    "flowsql_connectors/lakes/delta/partitions:texts": "over the partitions of data files",
    "flowsql_connectors/lakes/writer:_numbered": "over the distinct values of a partition column in a batch",
    "flowsql_connectors/formats/avro/confluent/messages:RegistryDecoder.rows": "over the schemas of a batch",
    "flowsql_connectors/formats/protobuf/decode:_enums": "over the distinct numbers of an enum",
    "flowsql_connectors/formats/protobuf/encode:_numbers": "over the distinct names of an enum",
    "flowsql_connectors/formats/csv_decode:CsvDecoder._cut_at_row_starts": "over the head of a file",
    "flowsql_connectors/formats/csv_decode:CsvDecoder._score": "over a few rows, to find out where rows begin",
    "flowsql_connectors/formats/csv_decode:CsvDecoder._from_rows": ODD,
    "flowsql_connectors/formats/csv_decode:CsvDecoder._text_of_usual": "behind a failure: shows the row",
    "flowsql_connectors/formats/csv_decode:CsvDecoder._with_odd": ODD,
    "flowsql_connectors/formats/csv_decode:CsvDecoder._dubious": "over columns: their extremes",
    "flowsql_connectors/formats/csv_decode:CsvDecoder._may_hold_blank_lines": "over columns: their extremes",
    "flowsql_connectors/formats/csv_encode:CsvEncoder.head": "over the names of columns, once a file",
    "flowsql_connectors/formats/csv_odd_rows:part_blank_rows": "over blank lines",
    "flowsql_connectors/formats/csv_odd_rows:part_rows": "over odd rows, and runs between them",
    "flowsql_connectors/formats/csv_odd_rows:put_between": "over at most 256 odd rows",
    "flowsql_connectors/formats/change/lines:codes": "over distinct values: words of operations",
    "flowsql_connectors/formats/change/lines:without_lines": "over distinct values: names of databases and tables",
    "flowsql_connectors/cdc/new_changes:NewChanges._unseen": "over the chunks that rows of a batch belong to",
    "flowsql_connectors/cdc/postgres/connection:refused": "behind a failure: over the lines of its message",
    "flowsql_connectors/cdc/postgres/decode:ChangeDecoder.decode": "over the tables of a batch",
    "flowsql_connectors/cdc/postgres/log:PostgresLog.places": "over distinct keys, which the server puts into chunks",
    "flowsql_connectors/cdc/postgres/values:_quoted_arrays": "over distinct values: arrays with quotes",
    "flowsql_connectors/formats/inferring/csv:_judged": "over the distinct texts of a sample that stand for NULL",
    "flowsql_connectors/formats/inferring/csv:_sample": "over the fields of a file's first row",
    "flowsql_connectors/formats/inferring/csv_dialect:_judged": "over the 200 first rows, to find the delimiter",
    "flowsql_connectors/formats/inferring/json:_may_lose_digits": "over columns of a sample",
    "flowsql_connectors/formats/inferring/json:_merged": "over a sample whose fields have several types",
    "flowsql_connectors/formats/json_decode:JsonLines._line_by_line": ODD,
    "flowsql_connectors/http/answers:messages_of": "over the lines of an answer",
    "flowsql_connectors/http/lookup:HttpLookup._encoded": "over keys: a request each",
    "flowsql_connectors/http/lookup:HttpLookup.find": "over the answers to many keys each",
    "flowsql_connectors/http/sink:PostOutlet.send": "over the rows of requests",
    "flowsql_connectors/messages/lookup:MessageLookup.find": "over the answers to keys",
    "flowsql_connectors/sse:_Events.send": "over rows: an event is a text of its own",
    "flowsql_connectors/webhook:_Handler._messages": "over the lines of a request",
    "flowsql_connectors/websocket:_WebsocketOutlet.send": "over rows: the client library takes a message each",
    "flowsql_connectors/kafka/encode:RecordEncoder._check_topics": "over names of topics, each once a batch",
    "flowsql_connectors/kafka/bad_records:TopicLetters.write": CLIENT,
    "flowsql_connectors/dead_letters:read_letters": "over bad records that an earlier reader met, too",
    "flowsql_connectors/kafka/native_producer:NativeProducer._headers": HEADERS,
    "flowsql_connectors/kafka/native_producer:topics_of": TOPICS,
    "flowsql_connectors/kafka/native_producer:NativeProducer.send": "over headers behind a record that is refused",
    "flowsql_connectors/kafka/native:RecordConsumer._records": HEADERS,
    "flowsql_connectors/kafka/rows:_told": HEADERS,
    "flowsql_connectors/mongodb/from_bson:column_of": CLIENTS,
    "flowsql_connectors/mongodb/to_bson:_cut": CLIENTS,
    "flowsql_connectors/mongodb/to_bson:_each": CLIENTS,
    "flowsql_connectors/mongodb/to_bson:bson_values": CLIENTS,
    "flowsql_connectors/mqtt:MqttOutlet.send": CLIENTS,
    "flowsql_connectors/nats:NatsOutlet.send": CLIENTS,
    "flowsql_connectors/redis/lookup:_read": CLIENTS,
    "flowsql_connectors/redis/lookup:read_values": CLIENTS,
    "flowsql_connectors/redis/sink:RedisOutlet.send": CLIENTS,
    "flowsql_runtime/operators/changelog_function:FromChangelogOperator._kinds_of": "over distinct values: codes",
    "flowsql_connectors/formats/messages/lines:_escaped_in_texts": "over messages with a line feed inside of a text",
    "flowsql_connectors/formats/text_values:_parse_distinct": "over distinct values of texts that Arrow does not cast",
}


class _Finder(ast.NodeVisitor):
    """Functions, by qualified name, that make Python values of columns, columns of Python values, or rows of texts."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self._names: list[str] = []
        self._loops = 0
        #: Names of lists that the function makes, and of what stands in them.
        self._lists: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        before = self._loops, self._lists
        self._loops, self._lists = 0, _lists_of(node)
        self._inside(node)
        self._loops, self._lists = before

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
            if name in WHOLE or (name in IN_LOOPS and self._loops) or self._is_column_of_values(node):
                self.found.add(".".join(self._names))
        self.generic_visit(node)

    def _is_column_of_values(self, node: ast.Call) -> bool:
        """``pa.array`` of a list that a loop or a comprehension made."""
        if ast.unparse(node.func) != "pa.array" or not node.args:
            return False
        made = node.args[0]
        if isinstance(made, ast.List):
            return False
        return _is_list(made) or (isinstance(made, ast.Name) and made.id in self._lists)

    def _comprehension(self, generators: list[ast.comprehension], made: list[ast.expr]) -> None:
        for generator in generators:
            self._looped_over(generator.iter)
        self.visit(generators[0].iter)
        rest = [part for generator in generators for part in (generator.target, *generator.ifs)]
        self._in_loop([*rest, *(generator.iter for generator in generators[1:]), *made])

    def _looped_over(self, iterated: ast.expr) -> None:
        calls = (node for node in ast.walk(iterated) if isinstance(node, ast.Call))
        if any(isinstance(call.func, ast.Attribute) and _gives_rows(call, call.func.attr) for call in calls):
            self.found.add(".".join(self._names))

    def _in_loop(self, nodes: list[ast.AST]) -> None:
        self._loops += 1
        for node in nodes:
            self.visit(node)
        self._loops -= 1


def _gives_rows(call: ast.Call, name: str) -> bool:
    if name == "rows":
        return ast.unparse(call.func).endswith("tokenizer.rows")
    if name == "split":
        return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value in ("\n", b"\n")
    return name in LOOPED_OVER or name in CUTS


def _is_list(node: ast.expr) -> bool:
    """A comprehension, or ``list(...)`` or ``map(...)``; an empty list, too, which is there to be filled."""
    match node:
        case ast.ListComp() | ast.GeneratorExp() | ast.List(elts=[]):
            return True
        case ast.Call(func=ast.Name(id="list" | "map")):
            return True
    return False


def _lists_of(function: ast.FunctionDef) -> set[str]:
    """Names of a function's lists, and of those in its lists of lists."""
    found: set[str] = set()
    of_lists: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_list(value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if _is_list(value):
                pass
            case _:
                continue
        found.add(name)
        if isinstance(value, ast.ListComp) and _is_list(value.elt):
            of_lists.add(name)
    for node in ast.walk(function):
        match node:
            case ast.For(target=target, iter=over) | ast.comprehension(target=target, iter=over):
                if any(isinstance(part, ast.Name) and part.id in of_lists for part in ast.walk(over)):
                    found.update(part.id for part in ast.walk(target) if isinstance(part, ast.Name))
    return found


@cache
def _found() -> frozenset[str]:
    return frozenset(_functions())


def _functions() -> Iterator[str]:
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
    assert sorted(_found() - set(ALLOWED)) == []


def test_no_reason_outlives_its_loop() -> None:
    assert sorted(set(ALLOWED) - _found()) == []


@pytest.mark.parametrize(
    "body",
    [
        "[converted(raw) for raw in data.split(b'\\n')]",
        "for row in tokenizer.rows(text):\n        use(row)",
        "values = []\n    for raw in data:\n        values.append(raw)\n    return pa.array(values)",
        "columns = [[] for _ in wanted]\n    return [pa.array(column) for column, c in zip(columns, wanted)]",
        "return pa.array([text(value) for value in values], pa.string())",
        "return pa.array(list(map(text, values)))",
        "for value in column.to_pylist():\n        use(value)",
    ],
)
def test_rows_in_python_are_found(body: str) -> None:
    finder = _Finder()
    finder.visit(ast.parse(f"def read(data):\n    {body}\n"))
    assert finder.found == {"read"}


def test_arrays_of_arrays_are_not_rows() -> None:
    finder = _Finder()
    finder.visit(ast.parse("def read(data):\n    for part in text.split(';'):\n        pa.array(np.arange(3))\n"))
    assert finder.found == set()
