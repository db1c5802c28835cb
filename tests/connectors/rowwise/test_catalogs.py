"""Catalogs in plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from flowsql.connectors import (
    CatalogOptions,
    ConnectorOption,
    ListedTable,
    OptionSet,
    RowSource,
    TableCatalog,
    register,
)
from flowsql.errors import FlowSqlError
from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_connectors import registry

KEY = ConnectorOption("api-key", str, "", "Who asks.")
DATABASES = ConnectorOption("databases", lambda text: text.split(","), ["default"], "Which there are.")
TABLES: dict[str, ListedTable] = {}


class Ones(RowSource):
    options = OptionSet(optional=(KEY,))

    def read(self, split: str, position: Any) -> Any:
        yield (len(self.table.option(KEY)),)


class Shop(TableCatalog):
    options = OptionSet(optional=(KEY, DATABASES))

    def __init__(self, options: CatalogOptions) -> None:
        super().__init__(options)
        if options.value(KEY) == "wrong":
            raise OSError("refused")

    def databases(self) -> list[str]:
        return self.given.value(DATABASES)

    def tables(self, database: str) -> Mapping[str, ListedTable]:
        own = {"own": ListedTable({"n": "INT NOT NULL"}, {"connector": "ones", **_key(self.given)}, ("n",), "Lengths.")}
        return {**own, **TABLES}


def _key(options: CatalogOptions) -> dict[str, str]:
    return {KEY.key: options.declared[KEY.key]} if KEY.key in options.declared else {}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> TableEnvironment:
    monkeypatch.setattr(registry, "_REGISTERED", {})
    TABLES.clear()
    register("ones", source=Ones)
    register("shop", catalog=Shop)
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


def printed(environment: TableEnvironment, statement: str) -> str:
    with environment.execute_sql(statement).collect() as rows:
        return "\n".join(" ".join(map(str, row)) for row in rows)


def test_tables_appear(environment: TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "twelve chars")
    environment.execute_sql(
        "CREATE CATALOG c WITH ('type' = 'shop', 'api-key' = '${env:SHOP_KEY}', 'databases' = 'z,default')"
    )
    environment.execute_sql("USE CATALOG c")
    assert printed(environment, "SHOW DATABASES") == "default\nz"
    assert printed(environment, "SHOW TABLES") == "own"
    assert printed(environment, "SELECT * FROM own") == "12"
    shown = printed(environment, "SHOW CREATE TABLE z.own")
    assert "PRIMARY KEY (`n`) NOT ENFORCED" in shown
    assert "COMMENT 'Lengths.'" in shown
    assert "'api-key' = '${env:SHOP_KEY}'" in shown
    TABLES["new"] = ListedTable({"n": "INT"}, {"connector": "ones"})
    assert printed(environment, "SELECT * FROM `new`") == "0"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE CATALOG d WITH ('type' = 'shop', 'colour' = 'red')", "Unsupported options: colour"),
        ("CREATE CATALOG d WITH ('type' = 'shop', 'api-key' = 'wrong')", "Catalog 'd' failed: OSError: refused"),
        ("CREATE CATALOG d WITH ('type' = 'shop', 'databases' = 'x')", "has no database 'default', its default one"),
        ("CREATE CATALOG d WITH ('type' = 'shup')", "did you mean 'shop'?"),
        ("CREATE CATALOG d WITH ('type' = 'ones')", "Could not find any factory for identifier 'ones'"),
        ("SELECT * FROM c.`default`.bad", "Column 'n' of table 'bad' of catalog 'c': "),
        ("SELECT * FROM c.`default`.keyless", "Table 'keyless' of catalog 'c' has no column 'k'."),
        ("CREATE TABLE c.`default`.t (n INT) WITH ('connector' = 'ones')", "Catalog 'c' of type 'shop' shows what is"),
    ],
)
def test_what_is_refused(statement: str, said: str, environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE CATALOG c WITH ('type' = 'shop')")
    TABLES["bad"] = ListedTable({"n": "NUMBER OF"}, {"connector": "ones"})
    TABLES["keyless"] = ListedTable({"n": "INT"}, {"connector": "ones"}, ("k",))
    with pytest.raises(FlowSqlError) as caught:
        environment.execute_sql(statement)
    assert said in caught.value.render()


def test_register_takes_catalogs() -> None:
    with pytest.raises(TypeError, match="a catalog is a subclass of TableCatalog or CatalogFactory"):
        register("x", catalog=Ones)  # type: ignore[arg-type]
