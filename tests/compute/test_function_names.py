"""The names that Flink 2.3 lists with SHOW FUNCTIONS: each is a function here, or it is said why it is none in SQL."""

from __future__ import annotations

import pytest

from flowsql_compute.functions.flink_names import FLINK_FUNCTIONS
from flowsql_compute.functions.registry import function_names
from flowsql_planner.catalog.core_module import CORE_FUNCTIONS

#: Names of Flink's Table API, and the SQL function or operator behind each.
SQL_NAMES = {
    "between": "<=", "charlength": "CHAR_LENGTH", "converttz": "CONVERT_TZ", "currentdatabase": "CURRENT_DATABASE",
    "currentdate": "CURRENT_DATE", "currentrowtimestamp": "CURRENT_ROW_TIMESTAMP", "currenttime": "CURRENT_TIME",
    "currenttimestamp": "CURRENT_TIMESTAMP", "dateformat": "DATE_FORMAT", "divide": "/", "equals": "=",
    "frombase64": "FROM_BASE64", "fromunixtime": "FROM_UNIXTIME", "get": "FIELD", "greaterthan": ">",
    "greaterthanorequal": ">=", "ifthenelse": "IF", "isfalse": "IS FALSE", "isnotfalse": "IS NOT FALSE",
    "isnotnull": "IS NOT NULL", "isnottrue": "IS NOT TRUE", "isnull": "IS NULL", "istrue": "IS TRUE",
    "json_arrayagg_absent_on_null": "JSON_ARRAYAGG", "json_arrayagg_null_on_null": "JSON_ARRAYAGG",
    "json_objectagg_absent_on_null": "JSON_OBJECTAGG", "json_objectagg_null_on_null": "JSON_OBJECTAGG",
    "lessthan": "<", "lessthanorequal": "<=",
    "lowercase": "LOWER", "minus": "-", "minusprefix": "-", "notbetween": "<=", "notequals": "<>",
    "parseurl": "PARSE_URL", "plus": "+", "randinteger": "RAND_INTEGER", "regexpextract": "REGEXP_EXTRACT",
    "regexpreplace": "REGEXP_REPLACE", "splitindex": "SPLIT_INDEX", "stddevpop": "STDDEV_POP",
    "stddevsamp": "STDDEV_SAMP", "strtomap": "STR_TO_MAP", "temporaloverlaps": "OVERLAPS", "times": "*",
    "tobase64": "TO_BASE64", "todate": "TO_DATE", "totimestamp": "TO_TIMESTAMP", "unixtimestamp": "UNIX_TIMESTAMP",
    "uppercase": "UPPER", "varpop": "VAR_POP", "varsamp": "VAR_SAMP",
}  # fmt: skip
#: Syntax of SQL, not functions.
SYNTAX = frozenset({"as", "asc", "cast", "desc", "distinct", "over", "try_cast", "is_json", "default"})
#: Parts of Flink's planner and Table API that no SQL statement names.
INTERNAL = frozenset({
    "agg_decimal_minus", "agg_decimal_plus", "assignment", "at", "end", "flatten", "hive_agg_decimal_plus", "rangeto",
    "reinterpretcast", "rowtime", "start", "streamrecordtimestamp", "sum0", "withcolumns", "withoutcolumns",
})  # fmt: skip
#: Table functions of their own issue: refused by name.
TABLE_FUNCTIONS = frozenset({"from_changelog", "to_changelog", "ml_predict"})


@pytest.mark.parametrize("name", CORE_FUNCTIONS)
def test_each_listed_name_is_known(name: str) -> None:
    key = name.lower()
    known = set(function_names())
    assert (
        name.upper() in known
        or SQL_NAMES.get(key) in known
        or key in SYNTAX | INTERNAL
        or (key in TABLE_FUNCTIONS and name.upper() in FLINK_FUNCTIONS)
    )


def test_there_are_as_many_as_flink_has() -> None:
    assert len(CORE_FUNCTIONS) == len(set(CORE_FUNCTIONS)) == 251


def test_what_is_explained_is_listed_and_no_function() -> None:
    listed, known = {name.lower() for name in CORE_FUNCTIONS}, set(function_names())
    explained = {*SQL_NAMES, *SYNTAX, *INTERNAL, *TABLE_FUNCTIONS}
    assert explained <= listed
    assert not {name for name in explained if name.upper() in known}
