"""Every type, out of rows that are there and out of the log: the same values."""

from __future__ import annotations

import datetime
from contextlib import closing
from decimal import Decimal

import pytest

from flowsql_connectors.cdc.mysql import log
from flowsql_core.types import logical as t

from .place import Place

pytestmark = pytest.mark.servers

UTC = datetime.UTC
LONG = "123456789012345678901234567890.123456789012345678901234567890"
#: Name, type in the database, declared type, value in SQL, value that is read.
TYPES = [
    ("a", "tinyint", t.TINYINT, "-128", -128),
    ("au", "tinyint unsigned", t.SMALLINT, "255", 255),
    ("s", "smallint", t.SMALLINT, "-32768", -32768),
    ("su", "smallint unsigned", t.INT, "65535", 65535),
    ("m", "mediumint", t.INT, "-8388608", -8388608),
    ("mu", "mediumint unsigned", t.BIGINT, "16777215", 16777215),
    ("i", "int", t.INT, "-2147483648", -2147483648),
    ("iu", "int unsigned", t.BIGINT, "4294967295", 4294967295),
    ("wide", "int", t.BIGINT, "-5", -5),
    ("l", "bigint", t.BIGINT, "-9223372036854775808", -9223372036854775808),
    ("lu", "bigint unsigned", t.DecimalType(precision=20, scale=0), "18446744073709551615", Decimal(2**64 - 1)),
    ("lus", "bigint unsigned", t.BIGINT, "7", 7),
    ("zf", "int(5) unsigned zerofill", t.BIGINT, "7", 7),
    ("f", "float", t.FLOAT, "0.1", pytest.approx(0.1, rel=1e-7)),
    ("f2", "float", t.FLOAT, "16777216.5", 16777216.0),
    ("d", "double", t.DOUBLE, "1.7976931348623157e308", 1.7976931348623157e308),
    ("d2", "double(10,3) unsigned", t.DOUBLE, "0.125", 0.125),
    ("fd", "float", t.DOUBLE, "1.5", 1.5),
    ("n", "decimal(10,2)", t.DecimalType(precision=10, scale=2), "-12345.67", Decimal("-12345.67")),
    ("n38", "decimal(38,10)", t.DecimalType(precision=38, scale=10), "-1.5", Decimal("-1.5000000000")),
    ("nu", "decimal(6,1) unsigned zerofill", t.DecimalType(precision=6, scale=1), "1.5", Decimal("1.5")),
    ("n0", "decimal(5,5)", t.DecimalType(precision=5, scale=5), "-0.00001", Decimal("-0.00001")),
    ("nr", "decimal(10,4)", t.DecimalType(precision=10, scale=2), "-1.0050", Decimal("-1.01")),
    ("nov", "decimal(38,2)", t.DecimalType(precision=5, scale=2), "-1000", None),
    ("nw", "decimal(38,2)", t.DecimalType(precision=22, scale=1), "999999999999999999999.94",
     Decimal("999999999999999999999.9")),
    ("nl", "decimal(65,30)", t.STRING, LONG, LONG),
    ("nn", "decimal(65,30)", t.STRING, f"-{LONG}", f"-{LONG}"),
    ("ns", "decimal(10,2)", t.STRING, "-0.05", "-0.05"),
    ("nz", "decimal(10,0)", t.STRING, "0", "0"),
    ("bo", "boolean", t.BOOLEAN, "true", True),
    ("bt", "tinyint(1)", t.TINYINT, "5", 5),
    ("bf", "tinyint(1)", t.BOOLEAN, "2", False),
    ("bn", "tinyint(1)", t.BOOLEAN, "-1", False),
    ("b1", "bit(1)", t.BOOLEAN, "b'1'", True),
    ("b9", "bit(9)", t.BYTES, "b'100000010'", b"\x02\x01"),
    ("b64", "bit(64)", t.BYTES, "18446744073709551615", b"\xff" * 8),
    ("e", "enum('x','it''s','zö')", t.STRING, "'zö'", "zö"),
    ("e2", "enum('a','b') character set latin1", t.STRING, "'b'", "b"),
    ("el", "enum('é','ü') character set latin1", t.STRING, "'ü'", "ü"),
    ("st", "set('p','q','r')", t.ArrayType(element=t.STRING), "'r,p'", ["p", "r"]),
    ("st0", "set('p','q','r')", t.ArrayType(element=t.STRING), "''", [""]),
    ("stt", "set('p','q','r')", t.STRING, "'r,p'", "p,r"),
    ("y", "year", t.INT, "2026", 2026),
    ("dt", "date", t.DATE, "'1956-02-29'", datetime.date(1956, 2, 29)),
    ("tm", "time", t.TimeType(precision=0), "'23:59:58'", datetime.time(23, 59, 58)),
    ("tm3", "time(3)", t.TimeType(precision=3), "'01:02:03.456'", datetime.time(1, 2, 3, 456000)),
    ("tms", "time", t.STRING, "'-12:34:56'", "-12:34:56"),
    ("tm6", "time(6)", t.STRING, "'-838:59:58.999999'", "-838:59:58.999999"),
    ("tm1", "time(1)", t.STRING, "'-00:00:00.5'", "-00:00:00.5"),
    ("ts", "timestamp null", t.TimestampLtzType(precision=0), "'2026-01-02 03:04:05'",
     datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ("ts6", "timestamp(6) null", t.TimestampType(precision=6), "'2026-07-02 03:04:05.123456'",
     datetime.datetime(2026, 7, 2, 5, 4, 5, 123456)),
    ("dtm", "datetime", t.TimestampType(precision=0), "'1000-01-01 00:00:01'", datetime.datetime(1000, 1, 1, 0, 0, 1)),
    ("dtm3", "datetime(3)", t.TimestampType(precision=3), "'1969-12-31 23:59:59.999'",
     datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)),
    ("dtm5", "datetime(5)", t.TimestampType(precision=6), "'9999-12-31 23:59:59.12345'",
     datetime.datetime(9999, 12, 31, 23, 59, 59, 123450)),
    ("zero", "datetime", t.TimestampType(precision=0), "'0000-00-00 00:00:00'", None),
    ("zd", "date", t.DATE, "'2026-00-15'", None),
    ("ch", "char(5)", t.STRING, "'ab  '", "ab"),
    ("vc", "varchar(20)", t.STRING, "'héllo𝄞'", "héllo𝄞"),
    ("vl", "varchar(1000)", t.STRING, "repeat('x', 999)", "x" * 999),
    ("vn", "varchar(9)", t.STRING, "''", ""),
    ("tx", "text", t.STRING, "repeat('é', 40000)", None),
    ("lt", "longtext", t.STRING, "'long'", "long"),
    ("la", "varchar(9) character set latin1", t.STRING, "'é€'", "é€"),
    ("gb", "varchar(9) character set gbk", t.STRING, "'中文'", "中文"),
    ("u2", "char(9) character set ucs2", t.STRING, "'zö'", "zö"),
    ("bi", "binary(6)", t.BYTES, "x'01020000'", b"\x01\x02\0\0\0\0"),
    ("vb", "varbinary(300)", t.BYTES, "x'0a00'", b"\n\0"),
    ("bl", "blob", t.BYTES, "x'ff00'", b"\xff\0"),
    ("mb", "mediumblob", t.BYTES, "''", b""),
    ("js", "json", t.STRING, """'{"a": [1, 2]}'""", '{"a":[1,2]}'),
    ("g", "point", t.STRING, "ST_GeomFromText('POINT(1 2.5)')", '{"coordinates":[1,2.5],"type":"Point","srid":0}'),
    ("gg", "geometry", t.STRING, "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(15 15, 20 20))')",
     '{"geometries":[{"type":"Point","coordinates":[1,1]},{"type":"LineString","coordinates":[[15,15],[20,20]]}],'
     '"type":"GeometryCollection","srid":0}'),
    ("gp", "polygon", t.STRING, "ST_GeomFromText('POLYGON((1 1, 2 1, 2 2, 1 1))')",
     '{"coordinates":[[[1,1],[2,1],[2,2],[1,1]]],"type":"Polygon","srid":0}'),
    ("gr", "polygon", t.STRING,
     "ST_GeomFromText('POLYGON((0 0, 0 9, 9 9, 9 0, 0 0), (1 1, 2 1, 2 2, 1 1))')",
     '{"coordinates":[[[0,0],[9,0],[9,9],[0,9],[0,0]],[[1,1],[2,2],[2,1],[1,1]]],"type":"Polygon","srid":0}'),
    ("v", "int as (1 + 1) virtual", t.INT, None, 2),
]  # fmt: skip
#: What is read where the table itself does not tell: MariaDB's JSON is a text, of which nothing is changed.
READ = {"tx": "é" * 32767, "js": '{"a": [1, 2]}'}


@pytest.fixture
def filled(place: Place) -> Place:
    columns = ", ".join(f"{name} {spelled}" for name, spelled, *_ in TYPES)
    place.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns}) CHARACTER SET utf8mb4")
    return place


def insert(place: Place, id_: int) -> None:
    given = [(name, value) for name, _, _, value, _ in TYPES if value is not None]
    names, values = ", ".join(name for name, _ in given), ", ".join(value for _, value in given)
    with closing(place.connect()) as server, server.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"INSERT INTO t (id, {names}) VALUES ({id_}, {values})")
        cursor.execute(f"INSERT INTO t (id) VALUES ({id_ + 1})")


@pytest.mark.parametrize("metadata", ["FULL", "NO_LOG"])
@pytest.mark.parametrize("only_positions", [False, True], ids=["snapshot", "positions"])
def test_every_type(filled: Place, metadata: str, only_positions: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if only_positions:
        monkeypatch.setattr(log, "_COMMIT_S", 0.0)
        monkeypatch.setattr("flowsql_connectors.cdc.mysql.server.Server.begin_snapshot", lambda self: None)
    filled.execute(f"SET GLOBAL binlog_row_metadata = '{metadata}'")
    try:
        insert(filled, 1)
        columns = {"id": t.INT, **{name: type_ for name, _, type_, _, _ in TYPES}}
        scan = filled.scan(columns, ("id",), server_time_zone="Europe/Berlin").open()
        scan.take(2)
        insert(filled, 3)
        filled.execute("UPDATE t SET i = 7 WHERE id = 3")
        found = {(kind, row[0]): row for kind, *row in scan.take(6)}
        scan.close()
    finally:
        filled.execute("SET GLOBAL binlog_row_metadata = 'FULL'")
    expected = [READ.get(name, value) for name, _, _, _, value in TYPES]
    names = list(columns)
    for kind, id_ in (("+I", 1), ("+I", 3), ("-U", 3)):
        assert dict(zip(names, found[kind, id_], strict=True)) == dict(zip(names, [id_, *expected], strict=True))
    nothing = [2 if name == "v" else None for name in names[1:]]
    assert found["+I", 2] == [2, *nothing]
    assert found["+I", 4] == [4, *nothing]
    assert found["+U", 3][names.index("i")] == 7
