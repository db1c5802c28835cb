"""Tables that Spark reads by a reader of its own, with the columns that their declaration says."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any, Final

from flowsql_core.errors import ConnectorError
from flowsql_core.graph.spark import SparkReader
from flowsql_runtime.spark.errors import text_of
from flowsql_runtime.spark.sessions.host import SparkHost

_NO_DRIVER: Final = re.compile(r"ClassNotFoundException: ([\w.$]+)|No suitable driver")
_JAVA: Final = re.compile(r"^(?:[\w$]+\.)+[\w$]+(?:Exception|Error): ")
#: Types of Spark from narrow to wide: values of one are values of all behind it.
_WIDER: Final = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))


def rows_of_reader(host: SparkHost, own: SparkReader, ddl: str) -> Any:
    """The rows with columns c0, c1, ... of the types in ``ddl``.

    Raises:
        ConnectorError: there is no such table, driver or column, nobody answers, or a column has another type.
    """
    try:
        whole = host.session.read.format(own.format).options(**dict(own.options)).load()
        found = {field.name: field.dataType for field in whole.schema.fields}
    except Exception as error:
        raise _unreadable(own, error) from error
    declared = [field.dataType for field in host.schema(ddl).fields] if ddl else []
    columns = []
    for place, (name, type_) in enumerate(zip(own.names, declared, strict=True)):
        there = _column_named(own, name, list(found))
        column = whole["`" + there.replace("`", "``") + "`"]
        if found[there] != type_:
            if not _fits(found[there], type_):
                raise ConnectorError(
                    "spark-reader",
                    f"Column '{there}' of '{own.name}' is {found[there].simpleString().upper()} there, which does not "
                    f"fit {type_.simpleString().upper()}.",
                    hint="declare the type that it has",
                )
            # A column that is cast is filtered here: of the others the reader's source applies conditions itself.
            column = column.cast(type_)
        columns.append(column.alias(f"c{place}"))
    if own.bounds is not None:
        name, lower, upper = own.bounds
        there = _column_named(own, name, list(found))
        whole = whole.where(_within("`" + there.replace("`", "``") + "`", found[there].simpleString(), lower, upper))
    return whole.select(*columns)


def _within(column: str, type_name: str, lower: str, upper: str) -> str:
    bounds = ("'" + bound.replace("\\", "\\\\").replace("'", "\\'") + "'" for bound in (lower, upper))
    return f"{column} BETWEEN " + " AND ".join(f"CAST({bound} AS {type_name})" for bound in bounds)


def _column_named(own: SparkReader, name: str, there: Sequence[str]) -> str:
    """Databases that are not asked otherwise write names in one case of letters."""
    if name in there:
        return name
    alike = [other for other in there if other.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    raise ConnectorError("spark-reader", f"'{own.name}' has no column '{name}'.", hint=f"it has {', '.join(there)}")


def _fits(found: Any, wanted: Any) -> bool:
    """Whether values of one type of Spark become those of another as in Flink: decimals are rounded."""
    types: Any = importlib.import_module("pyspark.sql.types")
    if isinstance(found, types.DecimalType) and isinstance(wanted, types.DecimalType):
        return True
    texts = (types.StringType, types.CharType, types.VarcharType)
    if isinstance(found, texts) and isinstance(wanted, texts):
        return True
    names = found.simpleString(), wanted.simpleString()
    return any(names[0] in line and names[1] in line and line.index(names[0]) < line.index(names[1]) for line in _WIDER)


def _unreadable(own: SparkReader, error: Exception) -> ConnectorError:
    text = text_of(error)
    driver = _NO_DRIVER.search(text)
    if driver is not None:
        what = f"the driver {driver[1]} is not there" if driver[1] else "no driver knows its address"
        hint = "name its jar in 'spark.jars', or its Maven coordinates in 'spark.jars.packages'"
        return ConnectorError("spark-reader", f"Table '{own.name}' cannot be read: {what}.", hint=hint)
    return ConnectorError("spark-reader", f"Table '{own.name}' cannot be read: {_last_cause(error)}")


def _last_cause(error: Exception) -> str:
    """The database's own word, where Java is at hand."""
    cause: Any = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    if cause is None:
        return _JAVA.sub("", text_of(error).strip().rpartition("\n")[2].strip())
    while cause.getCause() is not None:
        cause = cause.getCause()
    return _JAVA.sub("", str(cause.toString()).strip().partition("\n")[0])
