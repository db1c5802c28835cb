"""Messages of logical replication to changes, written here as a server writes them, and cut into batches anywhere."""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np
import pytest

from flowsql_connectors.cdc.log import ChunkKey, LogBatch, Place
from flowsql_connectors.cdc.postgres.decode import Captured, ChangeDecoder, Relation, Rules
from flowsql_connectors.cdc.postgres.positions import Visible, lsn_text
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_core.errors import ConnectorError
from flowsql_core.row import SHORT_STRINGS
from flowsql_core.types.logical import INT, STRING, Column

#: An UPDATE left the value as it was.
SAME = object()
Row = tuple[object, ...]
ALL = Rules(upserts=False, skipped=frozenset("t"), placeholder="?")


def row_of(row: Row) -> bytes:
    made = struct.pack("!H", len(row))
    for value in row:
        text = str(value).encode()
        made += b"n" if value is None else b"u" if value is SAME else b"t" + struct.pack("!I", len(text)) + text
    return made


def begin(lsn: int, xid: int) -> bytes:
    return b"B" + struct.pack("!QqI", lsn, 1_000_000 * xid, xid)


def commit(end: int) -> bytes:
    return b"C\0" + struct.pack("!QQq", end - 1, end, 0)


def insert(oid: int, row: Row) -> bytes:
    return b"I" + struct.pack("!I", oid) + b"N" + row_of(row)


def update(oid: int, old: Row | None, new: Row, mark: bytes = b"O") -> bytes:
    before = b"" if old is None else mark + row_of(old)
    return b"U" + struct.pack("!I", oid) + before + b"N" + row_of(new)


def delete(oid: int, old: Row, mark: bytes = b"O") -> bytes:
    return b"D" + struct.pack("!I", oid) + mark + row_of(old)


def relation(oid: int, name: str, *columns: str, identity: bytes = b"f") -> bytes:
    described = b"".join(b"\0" + column.encode() + b"\0" + struct.pack("!Ii", 23, -1) for column in columns)
    return (
        b"R" + struct.pack("!I", oid) + b"public\0" + name.encode() + b"\0" + identity
        + struct.pack("!H", len(columns)) + described
    )  # fmt: skip


def captured(described: Relation) -> Captured | None:
    """Tables ``a`` and ``b`` with columns ``id`` and ``v``."""
    if described.name not in ("a", "b"):
        return None
    natives = (NativeColumn("id", "integer", INT), NativeColumn("v", "text", STRING))
    output = (Column("id", INT), Column("v", STRING))
    return Captured("ab".index(described.name), output, natives, ("id",), ChunkKey("id", integer=True))


def decoder(rules: Rules = ALL) -> ChangeDecoder:
    made = ChangeDecoder(100, rules, captured)
    for message in (relation(1, "a", "id", "x", "v"), relation(2, "b", "v", "id"), relation(3, "c", "id")):
        made.describe(message)
    return made


def changes_of(batch: LogBatch) -> list[tuple[Any, ...]]:
    """``(table, kind, id, v, chunk key, transaction, time in s, position, number there)`` in their order."""
    found = []
    for table in batch.tables:
        columns = [column.to_pylist() for column in (*table.columns, table.keys)]
        for at, line in enumerate(table.lines.tolist()):
            transaction = batch.transactions[batch.transaction[line]]
            found.append(
                (
                    line, "ab"[table.table], SHORT_STRINGS[table.kinds[at]], *(column[at] for column in columns),
                    transaction.id, int(batch.times_ms[line] - 946_684_800_000) // 1000, transaction.position,
                    int(batch.ordinal[line]),
                )
            )  # fmt: skip
    return [change[1:] for change in sorted(found)]


MESSAGES = [
    begin(150, 7),
    insert(1, (1, None, "one")),
    insert(2, ("zwei", 2)),
    insert(3, (9,)),
    update(1, (1, None, "one"), (1, 5, "eins")),
    commit(200),
    begin(210, 8),
    commit(220),
    begin(250, 9),
    update(2, ("zwei", 2), (SAME, 3)),
    delete(1, (1, 5, "eins")),
    insert(1, (4, None, None)),
    commit(300),
]
EXPECTED = [
    ("a", "+I", 1, "one", 1, 7, 7, 100, 1),
    ("b", "+I", 2, "zwei", 2, 7, 7, 100, 3),
    ("a", "-U", 1, "one", 1, 7, 7, 100, 6),
    ("a", "+U", 1, "eins", 1, 7, 7, 100, 7),
    ("b", "-D", 2, "zwei", 2, 9, 9, 220, 0),
    ("b", "+I", 3, "zwei", 3, 9, 9, 220, 1),
    ("a", "-D", 1, "eins", 1, 9, 9, 220, 2),
    ("a", "+I", 4, None, 4, 9, 9, 220, 5),
]


@pytest.mark.parametrize("seed", range(10))
def test_batches_are_cut_anywhere(seed: int) -> None:
    draw = random.Random(seed)
    cuts = sorted({*draw.sample(range(1, len(MESSAGES)), draw.randint(0, 6)), len(MESSAGES)})
    made, found, begun = decoder(), [], 0
    for cut in cuts:
        batch = made.decode(MESSAGES[begun:cut])
        found += changes_of(batch)
        last = MESSAGES[cut - 1][:1]
        assert made.within_transaction == (last != b"C")
        if last == b"B":
            assert batch.end.done == 0
        begun = cut
    assert found == EXPECTED
    assert batch.end == Place(300)


def test_where_a_batch_ends_within_a_transaction() -> None:
    made = decoder()
    assert made.decode(MESSAGES[:3]).end == Place(100, 4)
    assert made.decode(MESSAGES[3:5]).end == Place(100, 8)
    assert made.decode(MESSAGES[5:10]).end == Place(220, 2)


def test_upserts() -> None:
    made = decoder(Rules(upserts=True, skipped=frozenset("t"), placeholder="?"))
    batch = made.decode(
        [
            begin(150, 7),
            update(1, None, (1, 5, "new")),
            update(1, (1, None, None), (2, 5, SAME), b"K"),
            delete(1, (2, None, None), b"K"),
            update(2, ("all", 1), ("of it", 1)),
            commit(200),
        ]
    )
    assert [change[:4] for change in changes_of(batch)] == [
        ("a", "+U", 1, "new"), ("a", "-D", 1, None), ("a", "+I", 2, "?"), ("a", "-D", 2, None), ("b", "+U", 1, "of it"),
    ]  # fmt: skip


@pytest.mark.parametrize("message", [update(1, None, (1, 5, "new")), delete(1, (2, None, None), b"K")])
def test_old_rows_that_are_missing(message: bytes) -> None:
    made = decoder()
    made.describe(relation(1, "a", "id", "x", "v", identity=b"i"))
    with pytest.raises(ConnectorError, match=r"no old row for an? (UPDATE|DELETE) .*REPLICA IDENTITY was USING INDEX"):
        made.decode([begin(150, 7), message])


def test_old_rows_by_their_key() -> None:
    made = decoder()
    made.describe(relation(1, "a", "id", "x", "v", identity=b"d"))
    batch = made.decode(
        [begin(150, 7), update(1, (1, None, None), (2, 5, "v"), b"K"), delete(1, (3, None, None), b"K"), commit(200)]
    )
    assert [change[:4] for change in changes_of(batch)] == [
        ("a", "-D", 1, None), ("a", "+I", 2, "v"), ("a", "-D", 3, None),
    ]  # fmt: skip
    with pytest.raises(ConnectorError, match=r"no old row for an UPDATE .*REPLICA IDENTITY was DEFAULT"):
        made.decode([begin(250, 8), update(1, None, (2, 5, "new"))])


def test_what_a_snapshot_shows() -> None:
    # The numbers of the log have 32 bits and begin anew.
    epoch = 3 << 32
    seen = Visible.of(f"{epoch - 3}:{epoch + 5}:{epoch - 3},{epoch + 2}")
    xids = [2**32 - 4, 2**32 - 3, 2**32 - 2, 0, 2, 4, 5, 1000]
    assert seen.shows(xids).tolist() == [True, False, True, True, False, True, False, False]
    assert np.array_equal(Visible.of("10:10:").shows([9, 10, 2**32 - 1]), [True, False, True])
    assert lsn_text((0x16 << 32) + 0xB374D848) == "16/B374D848"
