"""Tables of TPC-H with values drawn anew: the columns, keys and domains that its queries ask for, of any size.

Source: TPC Benchmark H, revision 3, clauses 1.4 and 4.2.3; sizes and distributions are simpler.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb

_NATIONS: Final = (
    "ALGERIA 0,ARGENTINA 1,BRAZIL 1,CANADA 1,EGYPT 4,ETHIOPIA 0,FRANCE 3,GERMANY 3,INDIA 2,INDONESIA 2,IRAN 4,IRAQ 4,"
    "JAPAN 2,JORDAN 4,KENYA 0,MOROCCO 0,MOZAMBIQUE 0,PERU 1,CHINA 2,ROMANIA 3,SAUDI ARABIA 4,VIETNAM 2,RUSSIA 3,"
    "UNITED KINGDOM 3,UNITED STATES 1"
)
_REGIONS: Final = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_WORDS: Final = {
    "colour": "green forest red blue almond azure beige black brown coral cream cyan",
    "comment": "special requests Customer Complaints carefully final deposits sleep quickly among ideas",
    "segment": "AUTOMOBILE BUILDING FURNITURE HOUSEHOLD MACHINERY",
    "priority": "1-URGENT 2-HIGH 3-MEDIUM 4-NOT_SPECIFIED 5-LOW",
    "mode": "AIR FOB MAIL RAIL REG_AIR SHIP TRUCK",
    "size": "SM MED LG JUMBO WRAP",
    "box": "CASE BOX BAG JAR PKG PACK CAN DRUM",
    "kind": "STANDARD SMALL MEDIUM LARGE ECONOMY PROMO",
    "finish": "ANODIZED BURNISHED PLATED POLISHED BRUSHED",
    "metal": "TIN NICKEL BRASS STEEL COPPER",
}
_INSTRUCT: Final = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")

#: Columns of the tables in SQL types that FlowSQL and DuckDB share.
COLUMNS: Final = {
    "region": "r_regionkey BIGINT, r_name VARCHAR, r_comment VARCHAR",
    "nation": "n_nationkey BIGINT, n_name VARCHAR, n_regionkey BIGINT, n_comment VARCHAR",
    "supplier": "s_suppkey BIGINT, s_name VARCHAR, s_address VARCHAR, s_nationkey BIGINT, s_phone VARCHAR, "
    "s_acctbal DECIMAL(15, 2), s_comment VARCHAR",
    "part": "p_partkey BIGINT, p_name VARCHAR, p_mfgr VARCHAR, p_brand VARCHAR, p_type VARCHAR, p_size INT, "
    "p_container VARCHAR, p_retailprice DECIMAL(15, 2), p_comment VARCHAR",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15, "
    "2), ps_comment VARCHAR",
    "customer": "c_custkey BIGINT, c_name VARCHAR, c_address VARCHAR, c_nationkey BIGINT, c_phone VARCHAR, "
    "c_acctbal DECIMAL(15, 2), c_mktsegment VARCHAR, c_comment VARCHAR",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus VARCHAR, o_totalprice DECIMAL(15, "
    "2), o_orderdate DATE, "
    "o_orderpriority VARCHAR, o_clerk VARCHAR, o_shippriority INT, o_comment VARCHAR",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(15, 2), "
    "l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2), l_tax DECIMAL(15, 2), l_returnflag VARCHAR, "
    "l_linestatus VARCHAR, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct VARCHAR, "
    "l_shipmode VARCHAR, l_comment VARCHAR",
}


def _list(values: tuple[str, ...] | list[str]) -> str:
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"


def write_tables(folder: Path, scale: float) -> None:
    """One Parquet file a table; ``scale`` 1 has 1,500,000 orders and about 6,000,000 lines."""
    suppliers, parts, customers, orders = (int(base * scale) for base in (10_000, 200_000, 150_000, 1_500_000))
    nations = [tuple(text.rsplit(" ", 1)) for text in _NATIONS.split(",")]
    with duckdb.connect() as connection:
        # A number below n, drawn by row and column.
        connection.execute("CREATE MACRO draw(i, salt, n) AS (hash(i * 64 + salt) % n)::BIGINT")
        connection.execute("CREATE MACRO money(i, salt, low, n) AS ((low + draw(i, salt, n)) / 100)::DECIMAL(15, 2)")
        connection.execute(
            "CREATE MACRO phone(i, nation) AS format('{}-{:03}-{:03}-{:04}', 10 + nation, draw(i, 60, 900) + 100, "
            "draw(i, 61, 900) + 100, draw(i, 62, 9000) + 1000)"
        )
        for name, words in _WORDS.items():
            made = _list([word.replace("_", " ") for word in words.split()])
            connection.execute(f"CREATE MACRO {name}(i, salt) AS {made}[draw(i, salt, {len(words.split())}) + 1]")
        connection.execute("CREATE MACRO remark(i) AS concat_ws(' ', comment(i, 50), comment(i, 51), comment(i, 52))")
        # A part's suppliers are four, as partsupp says.
        connection.execute(
            f"CREATE MACRO supplier_of(part, number) AS (part + number * ({suppliers} // 4 + 1)) % {suppliers} + 1"
        )
        rows = {
            "region": f"SELECT i - 1, {_list(_REGIONS)}[i], 'none' FROM range(1, 6) r(i)",
            "nation": f"SELECT i - 1, {_list([name for name, _ in nations])}[i], "
            f"{_list([region for _, region in nations])}[i]::BIGINT, 'none' FROM range(1, 26) r(i)",
            "supplier": "SELECT i, format('Supplier#{:09}', i), 'street ' || draw(i, 1, 1000), draw(i, 2, 25), "
            f"phone(i, draw(i, 2, 25)), money(i, 3, -99999, 1099999), remark(i) FROM range(1, {suppliers + 1}) r(i)",
            "part": "SELECT i, concat_ws(' ', colour(i, 1), colour(i, 2), colour(i, 3)), "
            "'Manufacturer#' || (1 + draw(i, 4, 5)), 'Brand#' || (1 + draw(i, 4, 5)) || (1 + draw(i, 5, 5)), "
            "concat_ws(' ', kind(i, 6), finish(i, 7), metal(i, 8)), 1 + draw(i, 9, 50), "
            f"size(i, 10) || ' ' || box(i, 11), money(i, 12, 90000, 110000), 'none' FROM range(1, {parts + 1}) r(i)",
            "partsupp": "SELECT i, supplier_of(i, j), 1 + draw(i * 4 + j, 1, 9999), "
            "money(i * 4 + j, 2, 100, 99900), 'none' "
            f"FROM range(1, {parts + 1}) r(i), range(4) s(j)",
            "customer": "SELECT i, format('Customer#{:09}', i), 'street ' || draw(i, 1, 1000), draw(i, 2, 25), "
            "phone(i, draw(i, 2, 25)), money(i, 3, -99999, 1099999), segment(i, 4), remark(i) "
            f"FROM range(1, {customers + 1}) r(i)",
            # A third of the customers has no orders.
            "orders": f"SELECT i, draw(i, 1, {customers} // 3) * 3 + 1 + draw(i, 2, 2), ['F', 'O', "
            "'P'][draw(i, 3, 3) + 1], "
            "money(i, 4, 100000, 40000000), DATE '1992-01-01' + draw(i, 5, 2405)::INT, priority(i, 6), "
            f"'Clerk#' || draw(i, 7, 1000), 0, remark(i) FROM range(1, {orders + 1}) r(i)",
            "lineitem": f"SELECT o, part, supplier_of(part, draw(i, 2, 4)), number, 1 + draw(i, 3, 50), "
            "money(i, 4, 90000, 10000000), draw(i, 5, 11) / 100, draw(i, 6, 9) / 100, ['A', 'N', "
            "'R'][draw(i, 7, 3) + 1], "
            "['F', 'O'][draw(i, 8, 2) + 1], shipped, ordered + 30 + draw(i, 9, 61)::INT, "
            "shipped + 1 + draw(i, 10, 30)::INT, "
            f"{_list(_INSTRUCT)}[draw(i, 11, 4) + 1], mode(i, 12), 'none' FROM ("
            f"SELECT o, number, o * 8 + number AS i, 1 + draw(o * 8 + number, 1, {parts}) AS part, "
            "DATE '1992-01-01' + draw(o, 5, 2405)::INT AS ordered, "
            "DATE '1992-01-01' + draw(o, 5, 2405)::INT + 1 + draw(o * 8 + number, 13, 121)::INT AS shipped "
            f"FROM range(1, {orders + 1}) r(o), range(1, 8) n(number) WHERE number <= 1 + draw(o, 14, 7))",
        }
        for name, query in rows.items():
            connection.execute(f"CREATE TABLE {name} ({COLUMNS[name]})")
            connection.execute(f"INSERT INTO {name} {query}")
            connection.execute(f"COPY {name} TO '{folder}/{name}.parquet' (FORMAT parquet)")
