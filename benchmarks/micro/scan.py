"""FlowSQL's file reader against the bare pyarrow reader of the same file and columns.

    PYTHONPATH=grammar:connectors python benchmarks/micro/scan.py DIR [--format csv|json|parquet] [--runs 5]

DIR holds one Nexmark file ``events/part-00000.<format>``. Both read it on one thread, whole, several times in turn;
printed are the best rates in million rows a second (wall clock, processor time) and the ratio of the processor times.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.json as pajson
import pyarrow.parquet as pq

from flowsql_connectors import registry
from flowsql_connectors.spi.source import ReaderContext, ReadStatus
from flowsql_core.clock import SystemClock
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column
from flowsql_core.types.text import parse_type

COLUMNS = tuple(
    Column(name, parse_type(type_))
    for name, type_ in (
        ("event_type", "INT"), ("dateTime", "TIMESTAMP(3)"), ("extra", "STRING"), ("p_id", "BIGINT"),
        ("p_name", "STRING"), ("p_emailAddress", "STRING"), ("p_creditCard", "STRING"), ("p_city", "STRING"),
        ("p_state", "STRING"), ("a_id", "BIGINT"), ("a_itemName", "STRING"), ("a_description", "STRING"),
        ("a_initialBid", "BIGINT"), ("a_reserve", "BIGINT"), ("a_expires", "TIMESTAMP(3)"), ("a_seller", "BIGINT"),
        ("a_category", "BIGINT"), ("b_auction", "BIGINT"), ("b_bidder", "BIGINT"), ("b_price", "BIGINT"),
        ("b_channel", "STRING"), ("b_url", "STRING"),
    )
)  # fmt: skip
NAMES = [column.name for column in COLUMNS]
PROJECTIONS = (
    ["event_type", "b_auction", "b_price", "dateTime"],
    ["event_type", "b_auction", "b_bidder", "b_price", "dateTime", "extra"],
    NAMES,
)


def read_flowsql(path: Path, format_: str, wanted: list[str]) -> int:
    options = [("connector", "filesystem"), ("path", str(path)), ("format", format_)]
    if format_ == "csv":
        options.append(("csv.null-literal", ""))
    projection = tuple(NAMES.index(name) for name in wanted)
    table = TableSpec(("c", "d", "events"), COLUMNS, tuple(options))
    source = registry.create_source(ScanSpec(table, projection, tuple(COLUMNS[i] for i in projection)), {})
    reader = source.create_reader(ReaderContext(0, 1, 65536, SystemClock(), {}, lambda name, n: None))
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    reader.no_more_splits()
    rows = 0
    while (polled := reader.poll(65536)) is not ReadStatus.END:
        if polled is ReadStatus.NOTHING_NOW:
            woken = threading.Event()
            reader.wake_when_available(woken.set)
            woken.wait()
            continue
        assert not isinstance(polled, ReadStatus)
        rows += polled.batch.num_rows
    reader.close()
    return rows


def read_bare(path: Path, format_: str, wanted: list[str]) -> int:
    types = {column.name: to_arrow(column.type) for column in COLUMNS if column.name in wanted}
    if format_ == "csv":
        batches = pacsv.open_csv(
            path,
            read_options=pacsv.ReadOptions(column_names=NAMES, use_threads=False, block_size=8 << 20),
            convert_options=pacsv.ConvertOptions(
                column_types=types, include_columns=wanted, null_values=[""], strings_can_be_null=True
            ),
        )
        return sum(batch.num_rows for batch in batches)
    if format_ == "json":
        table = pajson.read_json(
            path,
            read_options=pajson.ReadOptions(use_threads=False, block_size=8 << 20),
            parse_options=pajson.ParseOptions(explicit_schema=pa.schema(types), unexpected_field_behavior="ignore"),
        )
        return int(table.num_rows)
    file = pq.ParquetFile(path)
    return sum(batch.num_rows for batch in file.iter_batches(65536, columns=wanted, use_threads=False))


def measure(read: Callable[[], int]) -> tuple[float, float, int]:
    """Wall seconds, processor seconds, rows."""
    wall, used = time.perf_counter(), time.process_time()
    rows = read()
    return time.perf_counter() - wall, time.process_time() - used, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--format", default="csv", choices=("csv", "json", "parquet"))
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    path = arguments.dir / "events" / f"part-00000.{arguments.format}"
    for wanted in PROJECTIONS:
        best: dict[str, tuple[float, float]] = {}
        rows = 0
        for _ in range(arguments.runs):
            for name, read in (("bare", read_bare), ("flowsql", read_flowsql)):
                wall, used, rows = measure(partial(read, path, arguments.format, wanted))
                old = best.get(name, (wall, used))
                best[name] = (min(wall, old[0]), min(used, old[1]))
        shown = "  ".join(f"{name} {rows / w / 1e6:.2f} wall {rows / c / 1e6:.2f} cpu" for name, (w, c) in best.items())
        ratio = best["flowsql"][1] / best["bare"][1]
        print(f"{arguments.format} {len(wanted):2d} columns, M rows/s: {shown}  ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
