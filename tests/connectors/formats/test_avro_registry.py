"""avro-confluent and debezium-avro-confluent against a small registry, and a real one where one can be had."""

from __future__ import annotations

import io
import json
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from flowsql_connectors.formats.format import DecodeContext, EncodeContext, FileFormat, MessageDecoder
from flowsql_connectors.formats.registry import format_factory
from flowsql_core.errors import FlowSqlError
from flowsql_core.row import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from flowsql_core.types.arrow import to_arrow
from tests.connectors.formats.small_registry import SmallRegistry, small_registry
from tests.connectors.tables import columns_of, files_table, scan, table_of

AVRO, DEBEZIUM = "avro-confluent", "debezium-avro-confluent"
TOPIC = EncodeContext({}, "t-value")
DDL = "id INT NOT NULL, name STRING, n BIGINT"
ROWS = [(1, "a", 10), (2, None, None)]


@pytest.fixture
def registry() -> Iterator[SmallRegistry]:
    with small_registry() as server:
        yield server


def _format(url: str, ddl: str = DDL, format_: str = AVRO, **options: str) -> FileFormat:
    given = {f"{format_}.{key.replace('__', '.').replace('_', '-')}": value for key, value in options.items()}
    table = table_of(ddl, {"connector": "kafka", "format": format_, f"{format_}.url": url, **given})
    factory = format_factory(format_)
    every = factory.options()
    unknown = [key for key in given if key not in every.keys()]  # noqa: SIM118
    assert not unknown
    from flowsql_connectors.options import OptionValues

    return factory.create(OptionValues(dict(table.options)), table)


def _decoder(format_: FileFormat, ddl: str = DDL, *names: str) -> MessageDecoder:
    columns = columns_of(ddl)
    known = [column.name for column in columns]
    return format_.message_decoder(DecodeContext(columns, tuple(known.index(n) for n in names or known), 65536, {}))


def _columns(rows: list[Any], ddl: str = DDL) -> tuple[Any, ...]:
    return tuple(
        pa.array([row[at] for row in rows], to_arrow(column.type)) for at, column in enumerate(columns_of(ddl))
    )


def _message(number: int, schema: Any, row: Mapping[str, Any]) -> bytes:
    out = io.BytesIO(b"\0" + number.to_bytes(4, "big"))
    out.seek(5)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return out.getvalue()


def _record(record_name: str = "r", /, **fields: Any) -> dict[str, Any]:
    made = [{"name": name, "type": type_} for name, type_ in fields.items()]
    return {"type": "record", "name": record_name, "fields": made}


def _lists(found: Any) -> list[list[Any]]:
    return [array.to_pylist() for array in found.columns.arrays]


def test_rows_are_written_with_the_id_of_their_schema_and_read_back(registry: SmallRegistry) -> None:
    format_ = _format(registry.url)
    encoder = format_.message_encoder(columns_of(DDL), TOPIC)
    assert encoder.encode(_columns([]), 0, None).to_pylist() == []
    assert registry.asked == []
    first = encoder.encode(_columns(ROWS), 2, None)
    assert encoder.encode(_columns(ROWS), 2, None).to_pylist() == first.to_pylist()
    assert registry.asked == ["POST /subjects/t-value/versions"]
    schema = json.loads(registry.schemas[0])
    assert schema["namespace"] == "org.apache.flink.avro.generated"
    assert first.to_pylist() == [_message(1, schema, {"id": i, "name": name, "n": n}) for i, name, n in ROWS]
    decoder = _decoder(format_)
    for _ in range(2):
        assert _lists(decoder.rows(pa.array([*first.to_pylist(), None], pa.binary()))) == [
            [1, 2],
            ["a", None],
            [10, None],
        ]
    assert registry.asked[1:] == ["GET /schemas/ids/1"]
    assert _lists(decoder.rows(pa.array([], pa.binary()))) == [[], [], []]


def test_each_message_is_read_by_its_own_schema(registry: SmallRegistry) -> None:
    old = _record(gone="string", id="int")
    new = _record(id="int", n=["null", "int"], name="string", more={"type": "array", "items": "int"})
    numbers = [registry.put(old), registry.put(new)]
    messages = [
        _message(numbers[1], new, {"id": 1, "n": 5, "name": "a", "more": [1, 2]}),
        None,
        _message(numbers[0], old, {"gone": "x", "id": 2}),
        _message(numbers[1], new, {"id": 3, "n": None, "name": "b", "more": []}),
    ]
    found = _decoder(_format(registry.url)).rows(pa.array(messages, pa.binary()))
    assert _lists(found) == [[1, 2, 3], ["a", None, "b"], [5, None, None]]
    assert found.message is not None
    assert found.message.tolist() == [0, 2, 3]
    # The reader's own schema names fields otherwise, and says what they are where a writer has none.
    own = {"type": "record", "name": "r", "fields": [
        {"name": "key", "type": "int", "aliases": ["id"]}, {"name": "name", "type": "string", "default": "nobody"},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []}]}  # fmt: skip
    ddl = "key INT NOT NULL, name STRING NOT NULL, tags ARRAY<STRING NOT NULL> NOT NULL"
    decoder = _decoder(_format(registry.url, ddl, schema=json.dumps(own)), ddl)
    assert _lists(decoder.rows(pa.array(messages[2:], pa.binary()))) == [[2, 3], ["nobody", "b"], [[], []]]
    bad = messages[2][:-1] if messages[2] else b""
    with pytest.raises(match=r"field 'id', schema 1\.") as raised:
        _decoder(_format(registry.url)).rows(pa.array([messages[0], None, bad], pa.binary()))
    assert raised.value.message_number == 2


def test_a_given_schema_is_the_one_that_is_written(registry: SmallRegistry) -> None:
    own = _record("mine.Row", id="int", name=["null", "string"], n=["long", "null"])
    format_ = _format(registry.url, schema=json.dumps(own), subject="mine/x")
    messages = format_.message_encoder(columns_of(DDL), TOPIC).encode(_columns(ROWS), 2, None)
    assert registry.asked == ["POST /subjects/mine%2Fx/versions"]
    assert messages.to_pylist() == [_message(1, own, {"id": i, "name": m, "n": n}) for i, m, n in ROWS]
    assert _lists(_decoder(format_).rows(messages)) == [[1, 2], ["a", None], [10, None]]


@pytest.mark.parametrize("given", ["{", "17", '{"type": "record", "name": "r"}', '"nothing"'])
def test_texts_that_are_no_schemas(registry: SmallRegistry, given: str) -> None:
    with pytest.raises(FlowSqlError, match="The Avro schema cannot be used: "):
        _decoder(_format(registry.url, schema=given))


def test_what_is_said_of_bad_messages(registry: SmallRegistry) -> None:
    decoder = _decoder(_format(registry.url))
    for bad in (b"", b"\0\0\0", b'{"id": 1}', b"\1\0\0\0\1\2"):
        with pytest.raises(match=r"Unknown data format\. Magic number does not match") as raised:
            decoder.rows(pa.array([None, bad], pa.binary()))
        assert raised.value.message_number == 1
    with pytest.raises(FlowSqlError, match=r"Could not find schema with id 77 in registry http://127\.0\.0\.1:\d+\."):
        decoder.rows(pa.array([b"\0\0\0\0\x4d\0"], pa.binary()))
    number = registry.put({"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}]})
    with pytest.raises(FlowSqlError, match="Found string, expecting INT in field 'id'"):
        decoder.rows(pa.array([b"\0" + number.to_bytes(4, "big") + b"\0"], pa.binary()))


def test_registries_that_refuse_or_do_not_answer(registry: SmallRegistry) -> None:
    encoder = _format(registry.url).message_encoder(columns_of(DDL), TOPIC)
    registry.refuses = "Schema being registered is incompatible\nwith an earlier schema."
    with pytest.raises(FlowSqlError, match=r"refused POST /subjects/t-value/versions: HTTP 409 Schema being"):
        encoder.encode(_columns(ROWS), 2, None)
    registry.refuses = None
    # One that is not ready is asked again.
    registry.failures = [503, 500]
    assert len(encoder.encode(_columns(ROWS), 2, None)) == 2
    registry.failures = [503] * 3
    with pytest.raises(FlowSqlError, match=r"does not answer: HTTP 503 not now"):
        _decoder(_format(registry.url)).rows(pa.array([b"\0\0\0\0\1"], pa.binary()))


def test_nobody_answers() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(FlowSqlError, match=f"Registry {url} does not answer: .*refused"):
            _decoder(_format(url)).rows(pa.array([b"\0\0\0\0\1"], pa.binary()))
        # It accepts, and says nothing.
        held.listen()
        slow = _format(url, properties__http__read__timeout__ms="300")
        began = time.monotonic()
        with pytest.raises(FlowSqlError, match="does not answer: timed out"):
            _decoder(slow).rows(pa.array([b"\0\0\0\0\1"], pa.binary()))
        assert time.monotonic() - began < 5
    with pytest.raises(FlowSqlError, match=r"Registry http://nowhere\.invalid:1 does not answer"):
        _decoder(_format("http://nowhere.invalid:1")).rows(pa.array([b"\0\0\0\0\1"], pa.binary()))


def test_who_asks_says_who_it_is_and_never_tells(registry: SmallRegistry) -> None:
    registry.put({"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"}]})
    registry.allow("me:secret")
    message = pa.array([b"\0\0\0\0\1\2"], pa.binary())
    with pytest.raises(FlowSqlError, match=r"refused GET /schemas/ids/1: HTTP 401 who are you\?"):
        _decoder(_format(registry.url), DDL).rows(message)
    user = {"basic_auth__credentials_source": "USER_INFO", "basic_auth__user_info": "me:secret"}
    as_properties = {
        "properties__basic__auth__credentials__source": "USER_INFO", "properties__basic__auth__user__info": "me:secret"
    }  # fmt: skip
    with_user = registry.url.replace("//", "//me:secret@")
    for format_ in (_format(registry.url, **user), _format(registry.url, **as_properties), _format(with_user)):
        assert _lists(_decoder(format_, "id INT").rows(message)) == [[1]]
        assert "secret" not in repr(getattr(format_, "address")).replace(with_user, "")  # noqa: B009
    wrong = _format(registry.url.replace("//", "//me:other@"))
    with pytest.raises(FlowSqlError) as raised:
        _decoder(wrong, "id INT").rows(message)
    assert "other" not in raised.value.render()
    registry.authorization = "Bearer token"
    token = _format(registry.url, bearer_auth__credentials_source="STATIC_TOKEN", bearer_auth__token="token")
    assert _lists(_decoder(token, "id INT").rows(message)) == [[1]]


def test_the_second_of_two_registries_answers(registry: SmallRegistry) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        urls = f"http://127.0.0.1:{held.getsockname()[1]},{registry.url}"
        assert len(_format(urls).message_encoder(columns_of(DDL), TOPIC).encode(_columns(ROWS), 2, None)) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"basic_auth__user_info": "a:b"}, "user-info' needs 'avro-confluent.basic-auth.credentials-source'"),
        ({"basic_auth__credentials_source": "USER_INFO"}, "source' needs 'avro-confluent.basic-auth.user-info'"),
        ({"bearer_auth__token": "x"}, "bearer-auth.token' needs 'avro-confluent.bearer-auth.credentials-source'"),
        ({"ssl__keystore__location": "/nowhere.pem"}, "/nowhere.pem of 'avro-confluent.ssl.keystore.location' does"),
        ({"ssl__keystore__password": "x"}, "ssl.keystore.password' needs 'avro-confluent.ssl.keystore.location'"),
        ({"ssl__truststore__password": "x"}, "certificates are read from PEM files"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(options: dict[str, str], said: str) -> None:
    with pytest.raises(FlowSqlError, match=said):
        _format("http://localhost:1", **options)


def test_stores_of_java_are_refused(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\0\0")
    with pytest.raises(FlowSqlError, match=r"is a store of Java .* and a PEM file is wanted"):
        _format("http://localhost:1", ssl__truststore__location=str(store))


def test_neither_files_nor_unnamed_subjects(registry: SmallRegistry, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\0")
    with pytest.raises(FlowSqlError, match=r"Format 'avro-confluent' is for messages \(Kafka\), not for files"):
        scan(files_table(DDL, tmp_path, AVRO, **{"avro-confluent.url": registry.url}))
    with pytest.raises(FlowSqlError, match=r"Option 'avro-confluent\.subject' is required for serialization"):
        _format(registry.url).message_encoder(columns_of(DDL), EncodeContext({}))
    with pytest.raises(FlowSqlError, match="expected http://host:port"):
        _format("localhost:8081")


KINDS = np.array([INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE], np.uint8)
CHANGED = [(1, "a", 1), (1, "a", 1), (1, "b", 2), (1, "b", 2)]


def test_changes_as_debezium_writes_them(registry: SmallRegistry) -> None:
    format_ = _format(registry.url, format_=DEBEZIUM)
    messages = format_.message_encoder(columns_of(DDL), TOPIC).encode(_columns(CHANGED), 4, KINDS)
    schema = json.loads(registry.schemas[0])
    assert [branch if isinstance(branch, str) else branch["name"] for branch in schema] == ["null", "record"]
    events = [
        fastavro.schemaless_reader(io.BytesIO(m[5:]), fastavro.parse_schema(schema)) for m in messages.to_pylist()
    ]
    assert [(e["op"], (e["before"] or {}).get("name"), (e["after"] or {}).get("name")) for e in events] == [
        ("c", None, "a"), ("d", "a", None), ("c", None, "b"), ("d", "b", None)
    ]  # fmt: skip
    found = _decoder(format_).rows(pa.array([*messages.to_pylist(), None], pa.binary()))
    assert _lists(found)[1] == ["a", "a", "b", "b"]
    assert found.columns.kinds is not None
    assert found.columns.kinds.tolist() == [INSERT, DELETE, INSERT, DELETE]


def test_changes_that_debezium_wrote(registry: SmallRegistry) -> None:
    value = _record("Value", id="int", name=["null", "string"])
    schema = _record(
        "Envelope",
        before=["null", value],
        after=["null", "Value"],
        source=_record("Source", db="string"),
        op="string",
        ts_ms=["null", "long"],
    )
    number = registry.put(schema)

    def event(op: str, before: str | None, after: str | None) -> bytes:
        rows = [None if name is None else {"id": 1, "name": name} for name in (before, after)]
        return _message(
            number, schema, {"before": rows[0], "after": rows[1], "source": {"db": "d"}, "op": op, "ts_ms": 1}
        )

    messages = [event("r", None, "a"), event("u", "a", "b"), None, event("d", "b", None)]
    format_ = _format(registry.url, format_=DEBEZIUM)
    found = _decoder(format_, DDL, "n", "name").rows(pa.array(messages, pa.binary()))
    assert _lists(found) == [[None] * 4, ["a", "a", "b", "b"]]
    assert found.message is not None
    assert found.message.tolist() == [0, 1, 1, 3]
    assert found.columns.kinds is not None
    assert found.columns.kinds.tolist() == [INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE]
    only_kinds = format_.message_decoder(DecodeContext(columns_of(DDL), (), 65536, {})).rows(
        pa.array(messages, pa.binary())
    )
    assert (only_kinds.columns.arrays, only_kinds.columns.num_rows) == ((), 4)
    for bad, said in (
        (
            event("u", None, "b"),
            'The "before" field of UPDATE message is null, if you are using Debezium Postgres Connector',
        ),
        (event("c", "a", None), 'The "after" field is NULL|field "after" is NULL'),
        (event("x", None, "a"), 'Unknown "op" value "x"; expected one of c, r, u, d'),
    ):
        with pytest.raises(match=said) as raised:
            _decoder(format_).rows(pa.array([messages[0], None, bad], pa.binary()))
        assert raised.value.message_number == 2


@pytest.mark.servers
def test_a_real_registry(registry_server: dict[str, str]) -> None:
    url = registry_server["REGISTRY_URL"]
    for format_name, kinds in ((AVRO, None), (DEBEZIUM, KINDS)):
        subject = f"flowsql-{format_name}-{time.time_ns()}-value"
        format_ = _format(url, format_=format_name)
        encoder = format_.message_encoder(columns_of(DDL), EncodeContext({}, subject))
        messages = encoder.encode(_columns(CHANGED), 4, kinds)
        assert _lists(_decoder(format_).rows(messages)) == [list(column) for column in zip(*CHANGED, strict=True)]
    with pytest.raises(FlowSqlError, match="Could not find schema with id 99999999 in registry"):
        _decoder(_format(url)).rows(pa.array([b"\0" + (99999999).to_bytes(4, "big")], pa.binary()))
