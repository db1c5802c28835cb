"""Options of ``mysql-cdc``: read, or refused with a sentence."""

from __future__ import annotations

import pytest

from flowsql_core.errors import BindError
from flowsql_core.types import logical as t

from .place import Place

COLUMNS = {"id": t.INT, "x": t.STRING}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"server_id": "a"}, "The value of option 'server-id' is invalid: 'a'"),
        ({"server_id": "9-5"}, "expected numbers from 1 to 4294967295"),
        ({"table_name": "("}, "expected a regular expression"),
        ({"port": "70000"}, "expected a port from 1 to 65535"),
        ({"server_time_zone": "Mars"}, "Mars"),
        ({"connect__timeout": "100 ms"}, "cannot be less than 250 ms"),
        ({"scan__startup__mode": "timestamp"}, "'scan.startup.timestamp-millis' is required"),
        ({"scan__startup__mode": "specific-offset"}, "Unable to find a valid binlog offset"),
        ({"scan__startup__timestamp_millis": "1"}, "it belongs to 'timestamp'"),
        ({"scan__startup__mode": "never"}, "Supported values are [initial, earliest-offset"),
        ({"debezium__snapshot__mode": "never"}, "'scan.startup.mode' says what is read first"),
        ({"debezium__foo": "1"}, "not through Debezium"),
        ({"jdbc__properties__autoReconnect": "true"}, "without Java's driver"),
        ({"slot__name": "x"}, "Unsupported options found for 'mysql-cdc'"),
    ],
)
def test_options(options: dict[str, str], said: str) -> None:
    place = object.__new__(Place)
    place.options = {
        "connector": "mysql-cdc", "hostname": "h", "username": "u", "password": "p", "database-name": "d",
        "table-name": "t",
    }  # fmt: skip
    with pytest.raises(BindError) as caught:
        place.scan(COLUMNS, **options)
    assert said in caught.value.message, caught.value.message
