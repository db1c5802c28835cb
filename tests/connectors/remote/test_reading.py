"""Tables and names of files that are not on this machine: the same rows as from a disk."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_connectors.file_systems import remote
from flowsql_connectors.filesystem.splits import FileSplit
from flowsql_core.errors import ConnectorError, FlowSqlError
from tests.connectors.remote.store import Store, said
from tests.connectors.tables import drain, files_table, reader_of, scan, source_of

CSV = "a,b\n1,x\n2,y\n"
ROWS = [(1, "x"), (2, "y")]


def _zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def _parquet(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue())


def environment(store: Store) -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for key, value in store.settings.items():
        made.get_config().set(key, value)
    return made


def asked(store: Store, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in environment(store).execute_sql(sql).collect()]


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "f.csv": lambda data: data,
    "f.csv.gz": gzip.compress,
    "f.csv.bz2": bz2.compress,
    "f.csv.xz": lzma.compress,
    "f.csv.zst": _zstd,
}


@pytest.mark.parametrize("name", PACKED)
def test_csv_by_name(store: Store, name: str) -> None:
    uri = store.put(name, PACKED[name](CSV.encode()))
    assert asked(store, f"SELECT * FROM '{uri}' ORDER BY a") == ROWS


def test_json_parquet_and_raw(store: Store) -> None:
    line = store.put("f.jsonl", '{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n')
    table = store.put("f.parquet", _parquet(pa.table({"a": [1, 2], "b": ["x", "y"]})))
    for uri in (line, table):
        assert asked(store, f"SELECT a, b FROM '{uri}' ORDER BY a") == ROWS
    raw = files_table("t STRING", store.put("f.txt", "one\ntwo\n"), "raw")
    assert scan(raw, configuration=store.settings) == [["one"], ["two"]]


GLOBS = {
    "": [1, 2, 3, 4],
    "/": [1, 2, 3, 4],
    "/*.csv": [1],
    "/deep/*.csv": [2],
    "/d*/x.csv": [2],
    "/**/x.csv": [1, 2, 3],
    "/d??p/[xy].csv": [2],
    "/k=1": [3],
}


@pytest.mark.parametrize("behind", GLOBS)
def test_folders_and_globs(store: Store, behind: str) -> None:
    names = {"x.csv": 1, "deep/x.csv": 2, "k=1/x.csv": 3, "_k=2/y.csv": 4}
    for name, number in names.items():
        store.put(name, f"{number}\n")
    for hidden in (".x.csv", "_SUCCESS", ".deep/x.csv", "_deep/x.csv", "deep/.x.csv"):
        store.put(hidden, "99\n")
    rows = scan(files_table("a INT", f"{store.root}{behind}", "csv"), configuration=store.settings)
    assert sorted(row[0] for row in rows) == GLOBS[behind]


def test_a_pattern_picks_uris(store: Store) -> None:
    store.put("a.csv", "1\n")
    store.put("b.csv", "2\n")
    table = files_table("a INT", store.root, "csv", source__path__regex_pattern=".*/b[.]csv")
    assert scan(table, configuration=store.settings) == [[2]]


def test_folders_of_partitions_are_columns(store: Store) -> None:
    store.put("day=2024-01-01/hour=1/f.csv", CSV)
    store.put("day=2024-01-02/hour=12/f.csv", CSV)
    found = asked(store, f"SELECT a, `day`, `hour` FROM '{store.root}' WHERE `day` = DATE '2024-01-02' ORDER BY a")
    assert [(a, str(day), hour) for a, day, hour in found] == [(1, "2024-01-02", 12), (2, "2024-01-02", 12)]


def test_names_are_taken_as_they_are(store: Store) -> None:
    uri = store.put("a b/ü%20=x.csv", CSV)
    assert asked(store, f"SELECT * FROM '{uri}' ORDER BY a") == ROWS
    table = files_table("a INT, b STRING", uri, "csv", csv__header="true")
    rows = scan(table, configuration=store.settings, metadata=("file.path", "file.name", "file.size"))
    assert rows[0] == [1, "x", uri, "ü%20=x.csv", len(CSV)]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_large_files_are_read_by_ranges(store: Store, parallelism: int) -> None:
    numbers = range(200_000)
    store.put("f.csv", "".join(f'{number},"v\n{number}"\n' for number in numbers))
    table = files_table("a INT, b STRING", store.root, "csv")
    source, _ = source_of(table, configuration=store.settings)
    splits = source.create_enumerator().initial_splits(parallelism)
    assert sum(len(FileSplit.decode(split).ranges) for share in splits for split in share) > 1
    rows = scan(table, parallelism, configuration=store.settings)
    assert sorted(row[0] for row in rows) == list(numbers)


def test_columns_and_row_groups_that_nobody_wants_are_not_fetched(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 100_000
    table = pa.table({"a": list(range(rows)), "b": [f"{number:040}" for number in range(rows)]})
    data = _parquet(table, row_group_size=rows // 10, compression="NONE", use_dictionary=False)
    uri = store.put("f.parquet", data)
    fetched: list[int] = []

    class Counted:
        def __init__(self, file: Any) -> None:
            self._file, self.closed = file, False

        def read(self, size: int = -1) -> bytes:
            got: bytes = self._file.read(size)
            fetched.append(len(got))
            return got

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    whole = remote.RemoteFile.random_access
    monkeypatch.setattr(remote.RemoteFile, "random_access", lambda self: pa.PythonFile(Counted(whole(self)), mode="r"))
    declared = files_table("a BIGINT, b STRING", uri, "parquet")
    source, schema = source_of(declared, ["a"], configuration=store.settings)
    (splits,) = source.create_enumerator().initial_splits(1)
    split = FileSplit.decode(splits[0])
    assert len(split.ranges) == 10
    assert len(drain(reader_of_store(store, source), splits, schema)) == rows
    assert sum(fetched) < len(data) / 3
    fetched.clear()
    one = FileSplit(split.file, split.ranges[3:4])
    assert len(drain(reader_of_store(store, source), [one.encode()], schema)) == rows / 10
    assert sum(fetched) < len(data) / 10


def reader_of_store(store: Store, source: Any) -> Any:
    return reader_of(source, configuration=store.settings)


def test_new_objects_are_found_and_each_is_read_once(store: Store) -> None:
    table = files_table("a INT", store.root, "csv", source__monitor_interval="1 s")
    store.put("a.csv", "1\n")
    enumerator = source_of(table, configuration=store.settings)[0].create_enumerator()
    (first,) = enumerator.initial_splits(1)
    assert [FileSplit.decode(split).file.path for split in first] == [f"{store.root}/a.csv"]
    assert enumerator.discover(1) == []
    store.put("sub/b.csv", "2\n")
    found = enumerator.discover(1)
    assert [FileSplit.decode(split).file.path for split in found] == [f"{store.root}/sub/b.csv"]
    enumerator.assign(found, 1)
    store.put("a.csv", "3\n4\n")
    assert enumerator.discover(1) == []


def test_a_declared_table_keeps_what_was_inferred(store: Store) -> None:
    store.put("k=1/f.csv", CSV)
    made = environment(store)
    made.execute_sql(f"CREATE TABLE t WITH ('connector' = 'filesystem', 'path' = '{store.root}', 'format' = 'csv')")
    made.execute_sql(f"CREATE TABLE u (k STRING) LIKE FILE '{store.root}'")
    for name, key in (("t", 1), ("u", "1")):
        rows = [tuple(row) for row in made.execute_sql(f"SELECT a, b, k FROM {name} ORDER BY a").collect()]
        assert rows == [(*row, key) for row in ROWS]


WRONG = [
    ("nothing.csv", "does not exist"),
    ("no*.csv", "No file matches"),
    ("bad.parquet", "is no readable parquet file"),
    ("bad.csv.gz", "cannot be decompressed as gzip"),
]


@pytest.mark.parametrize(("name", "message"), WRONG)
def test_what_is_wrong_is_said(store: Store, name: str, message: str) -> None:
    store.put("bad.parquet", b"PAR1 but not really")
    store.put("bad.csv.gz", b"no gzip")
    with pytest.raises(FlowSqlError, match=message):
        asked(store, f"SELECT * FROM '{store.root}/{name}'")


def test_passwords_in_paths_are_refused() -> None:
    with pytest.raises(FlowSqlError) as caught:
        scan(files_table("a INT", "s3://key:geheim@bucket/x", "csv"))
    assert "geheim" not in said(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"s3.endpoint": "http://127.0.0.1:1", "s3.access-key": "k", "s3.secret-key": "geheim"}, "does not answer"),
        ({"s3.endpoint": "http://127.0.0.1:1", "s3.secret-key": "geheim"}, "or neither"),
    ],
)
def test_an_endpoint_that_cannot_be_asked(settings: dict[str, str], message: str) -> None:
    with pytest.raises(FlowSqlError, match=message) as caught:
        scan(files_table("a INT", "s3://bucket/x", "csv"), configuration=settings)
    assert "geheim" not in said(caught.value)


@pytest.mark.servers
@pytest.mark.parametrize(
    ("bucket", "key", "code"),
    [("nobucket", None, "no-such-bucket"), (None, "wrong", "storage-refused"), (None, None, "file-not-found")],
)
def test_buckets_and_access(s3_server: dict[str, str], bucket: str | None, key: str | None, code: str) -> None:
    settings = {
        "s3.endpoint": s3_server["S3_ENDPOINT"],
        "s3.access-key": s3_server["AWS_ACCESS_KEY_ID"],
        "s3.secret-key": key or s3_server["AWS_SECRET_ACCESS_KEY"],
    }
    for behind in ("nothing", "no*"):
        uri = f"s3://{bucket or s3_server['S3_BUCKET']}/{behind}"
        with pytest.raises(ConnectorError) as caught:
            scan(files_table("a INT", uri, "csv"), configuration=settings)
        assert caught.value.code == code
        assert settings["s3.secret-key"] not in said(caught.value)


def test_secrets_are_not_shown(store: Store) -> None:
    uri = store.put("f.csv", CSV)
    made = environment(store)
    secrets = {"s3.access-key": "AKIAGEHEIM", "s3.secret-key": "ganzgeheim"}
    if not store.settings:
        for key, value in secrets.items():
            made.get_config().set(key, value)
    else:
        secrets = {"s3.secret-key": store.settings["s3.secret-key"]}
    made.execute_sql(f"CREATE TABLE t LIKE FILE '{uri}'")
    shown = [
        [tuple(row) for row in made.execute_sql(statement).collect()]
        for statement in ("SET", "SHOW CREATE TABLE t", "EXPLAIN SELECT * FROM t", "DESCRIBE t")
    ]
    assert "******" in str(shown)
    assert not any(secret in str(shown) for secret in secrets.values())
