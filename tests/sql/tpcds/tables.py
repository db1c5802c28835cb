"""Tables of TPC-DS with values drawn anew: the columns, keys and domains that its queries ask for, of any size.

Source: TPC Benchmark DS, revision 3, clause 2; sizes and distributions are simpler. What each column holds is said in
tables.txt and sales.txt.
"""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from typing import Final

import duckdb

_TEXT: Final = "\n".join(Path(__file__).with_name(name).read_text("utf-8") for name in ("tables.txt", "sales.txt"))
_TABLE: Final = re.compile(r"^\[(\w+): (FROM .*)\]\n((?:.+\n)+)", re.MULTILINE)
_COLUMN: Final = re.compile(r"^(\w+) (\w+(?:\(\d+, \d+\))?)(?:: (.+))?$", re.MULTILINE)
#: Something for columns that no query asks for.
_ANYTHING: Final = {"INT": "draw(100)", "STRING": "pick(words)", "DECIMAL(7, 2)": "draw(10000) / 100"}
#: Functions of the rules: what is drawn for a row or its order, each time anew.
_DRAWN: Final = {
    "draw": "drawn(i, {salt}, ",
    "deal": "drawn(o, {salt}, ",
    "pick": "one_of(drawn(i, {salt}, 10000), ",
    "maybe": "mostly(drawn(i, {salt}, 25), ",
    "perhaps": "mostly(drawn(o, {salt}, 25), ",
}
_MACROS: Final = (
    "drawn(i, salt, n) AS CAST(hash(i * 1000 + salt) % n AS INT)",
    "one_of(number, list) AS list[1 + number % len(list)]",
    "mostly(number, value) AS CASE WHEN number > 0 THEN value END",
    # One in three sales is made on the first of its month.
    "sold(day, third) AS 2450815 + day - CASE WHEN third = 0 THEN day(DATE '1998-01-01' + day) - 1 ELSE 0 END",
)
_WORDS: Final = "['able', 'bar', 'cally', 'eing', 'ese', 'anti', 'ation', 'ought', 'pri', 'eseese']"
#: Of the list of query 8, and of query 15.
_ZIPS: Final = "['24128', '76232', '65084', '87816', '83926', '77556', '85669', '86197']"

_RULES: Final = {name: (source, _COLUMN.findall(columns)) for name, source, columns in _TABLE.findall(_TEXT)}
#: Columns of the tables in SQL types.
COLUMNS: Final = {
    name: ", ".join(f"{column} {type_}" for column, type_, _ in columns) for name, (_, columns) in _RULES.items()
}


def write_tables(folder: Path, scale: float) -> None:
    """One Parquet file a table; ``scale`` 1 has 100,000 lines of sales in stores."""
    sizes = {
        "store_sales": int(100_000 * scale),
        "catalog_sales": int(60_000 * scale),
        "web_sales": int(40_000 * scale),
        "item": 400,
        "customer": 500,
    }
    salts = count()

    def sql(rule: str) -> str:
        """A rule in DuckDB's SQL."""
        rule = re.sub(r"\bwords\b", _WORDS, re.sub(r"\bzips\b", _ZIPS, rule))
        rule = re.sub(r"\{(\w+)\}", lambda found: str(sizes[found[1]]), rule)
        return re.sub(
            rf"\b({'|'.join(_DRAWN)})\(", lambda found: _DRAWN[found[1]].format(salt=next(salts) % 1000), rule
        )

    with duckdb.connect() as connection:
        for macro in _MACROS:
            connection.execute(f"CREATE MACRO {macro}")
        for name, (source, columns) in _RULES.items():
            items = [f"CAST({sql(rule or _ANYTHING[type_])} AS {type_}) AS {column}" for column, type_, rule in columns]
            connection.execute(f"CREATE TABLE {name} AS SELECT {', '.join(items)} {sql(source)}")
            connection.execute(f"COPY {name} TO '{folder}/{name}.parquet' (FORMAT parquet)")
