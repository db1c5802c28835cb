"""The plain functions of expressions: one line each, PyFlink's name to the SQL function and its parameters.

What is more than a call (CAST, BETWEEN, JSON_VALUE, intervals, windows) stands in ``expression``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from flowsql.table.expression import Expression


class FunctionProperty:
    """``x.upper_case``: a function of the expression alone."""

    def __init__(self, function: str) -> None:
        self.function = function
        self.__doc__ = f"``{function}(x)`` of SQL."

    @overload
    def __get__(self, instance: None, owner: type) -> FunctionProperty: ...
    @overload
    def __get__(self, instance: Functions, owner: type) -> Expression: ...
    def __get__(self, instance: Functions | None, owner: type) -> FunctionProperty | Expression:
        return self if instance is None else instance._function(self.function, (instance,))


class FunctionMethod:
    """``x.round(2)``: a function of the expression and arguments.

    ``parameters``: names in order; ``name?`` may be left out, ``name=0`` has a default, ``*name`` stands for any
    number. ``last``: the expression itself is the last argument of SQL's function, not the first.
    """

    def __init__(self, function: str, *parameters: str, last: bool = False) -> None:
        self.function = function
        self.signature = inspect.Signature([_parameter(text) for text in parameters])
        self._last = last
        self.__doc__ = f"``{function}`` of SQL."

    @overload
    def __get__(self, instance: None, owner: type) -> FunctionMethod: ...
    @overload
    def __get__(self, instance: Functions, owner: type) -> Callable[..., Expression]: ...
    def __get__(self, instance: Functions | None, owner: type) -> FunctionMethod | Callable[..., Expression]:
        if instance is None:
            return self
        receiver = instance

        def method(*args: object, **named: object) -> Expression:
            bound = self.signature.bind(*args, **named)
            bound.apply_defaults()
            given = [value for value in _spread(bound) if value is not None]
            return receiver._function(self.function, (*given, receiver) if self._last else (receiver, *given))

        method.__doc__ = self.__doc__
        return method


def _parameter(text: str) -> inspect.Parameter:
    if text.startswith("*"):
        return inspect.Parameter(text[1:], inspect.Parameter.VAR_POSITIONAL)
    name, _, default = text.partition("=")
    if default:
        return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=int(default))
    if name.endswith("?"):
        return inspect.Parameter(name[:-1], inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _spread(bound: inspect.BoundArguments) -> list[Any]:
    return [*bound.args, *bound.kwargs.values()]


class Functions:
    """What every expression offers. Subclassed by :class:`~flowsql.table.expression.Expression` alone."""

    __slots__ = ()

    def _function(self, name: str, args: Sequence[object]) -> Expression:
        """A call of a SQL function on expressions and plain values."""
        raise NotImplementedError

    # Numbers

    exp = FunctionProperty("EXP")
    log10 = FunctionProperty("LOG10")
    log2 = FunctionProperty("LOG2")
    ln = FunctionProperty("LN")
    log = FunctionMethod("LOG", "base?", last=True)
    cosh = FunctionProperty("COSH")
    sinh = FunctionProperty("SINH")
    sin = FunctionProperty("SIN")
    cos = FunctionProperty("COS")
    tan = FunctionProperty("TAN")
    cot = FunctionProperty("COT")
    asin = FunctionProperty("ASIN")
    acos = FunctionProperty("ACOS")
    atan = FunctionProperty("ATAN")
    tanh = FunctionProperty("TANH")
    degrees = FunctionProperty("DEGREES")
    radians = FunctionProperty("RADIANS")
    sqrt = FunctionProperty("SQRT")
    abs = FunctionProperty("ABS")
    sign = FunctionProperty("SIGN")
    round = FunctionMethod("ROUND", "places")
    truncate = FunctionMethod("TRUNCATE", "n=0")
    bin = FunctionProperty("BIN")
    hex = FunctionProperty("HEX")
    unhex = FunctionProperty("UNHEX")

    # NULL

    if_null = FunctionMethod("IFNULL", "null_replacement")

    # Aggregates

    sum = FunctionProperty("SUM")
    min = FunctionProperty("MIN")
    max = FunctionProperty("MAX")
    count = FunctionProperty("COUNT")
    avg = FunctionProperty("AVG")
    first_value = FunctionProperty("FIRST_VALUE")
    last_value = FunctionProperty("LAST_VALUE")
    list_agg = FunctionMethod("LISTAGG", "separator?")
    stddev_pop = FunctionProperty("STDDEV_POP")
    stddev_samp = FunctionProperty("STDDEV_SAMP")
    var_pop = FunctionProperty("VAR_POP")
    var_samp = FunctionProperty("VAR_SAMP")
    collect = FunctionProperty("COLLECT")
    array_agg = FunctionProperty("ARRAY_AGG")
    percentile = FunctionMethod("PERCENTILE", "percentage", "frequency?")

    # Text

    concat = FunctionMethod("CONCAT", "other")
    starts_with = FunctionMethod("STARTSWITH", "start_expr")
    ends_with = FunctionMethod("ENDSWITH", "end_expr")
    substr = FunctionMethod("SUBSTR", "begin_index", "length?")
    replace = FunctionMethod("REPLACE", "search", "replacement")
    translate = FunctionMethod("TRANSLATE", "from_str", "to_str")
    char_length = FunctionProperty("CHAR_LENGTH")
    upper_case = FunctionProperty("UPPER")
    lower_case = FunctionProperty("LOWER")
    init_cap = FunctionProperty("INITCAP")
    lpad = FunctionMethod("LPAD", "length", "pad")
    rpad = FunctionMethod("RPAD", "length", "pad")
    regexp = FunctionMethod("REGEXP", "regex")
    regexp_count = FunctionMethod("REGEXP_COUNT", "regex")
    regexp_replace = FunctionMethod("REGEXP_REPLACE", "regex", "replacement")
    regexp_extract = FunctionMethod("REGEXP_EXTRACT", "regex", "extract_index?")
    regexp_extract_all = FunctionMethod("REGEXP_EXTRACT_ALL", "regex", "extract_index?")
    regexp_instr = FunctionMethod("REGEXP_INSTR", "regex")
    regexp_substr = FunctionMethod("REGEXP_SUBSTR", "regex")
    from_base64 = FunctionProperty("FROM_BASE64")
    to_base64 = FunctionProperty("TO_BASE64")
    ascii = FunctionProperty("ASCII")
    chr = FunctionProperty("CHR")
    decode = FunctionMethod("DECODE", "charset")
    encode = FunctionMethod("ENCODE", "charset")
    left = FunctionMethod("LEFT", "length")
    right = FunctionMethod("RIGHT", "length")
    instr = FunctionMethod("INSTR", "s")
    locate = FunctionMethod("LOCATE", "s", "pos?")
    url_decode = FunctionMethod("URL_DECODE")
    url_encode = FunctionMethod("URL_ENCODE")
    inet_aton = FunctionMethod("INET_ATON")
    inet_ntoa = FunctionMethod("INET_NTOA")
    parse_url = FunctionMethod("PARSE_URL", "part_to_extract", "key?")
    printf = FunctionMethod("PRINTF", "*obj")
    ltrim = FunctionMethod("LTRIM", "trim_str?")
    rtrim = FunctionMethod("RTRIM", "trim_str?")
    btrim = FunctionMethod("BTRIM", "trim_str?")
    repeat = FunctionMethod("REPEAT", "n")
    reverse = FunctionProperty("REVERSE")
    split_index = FunctionMethod("SPLIT_INDEX", "separator", "index")
    str_to_map = FunctionMethod("STR_TO_MAP", "list_delimiter?", "key_value_delimiter?")
    elt = FunctionMethod("ELT", "expr", "*exprs")
    split = FunctionMethod("SPLIT", "delimiter")

    # Collections

    cardinality = FunctionProperty("CARDINALITY")
    element = FunctionProperty("ELEMENT")
    array_append = FunctionMethod("ARRAY_APPEND", "addition")
    array_contains = FunctionMethod("ARRAY_CONTAINS", "needle")
    array_distinct = FunctionMethod("ARRAY_DISTINCT")
    array_position = FunctionMethod("ARRAY_POSITION", "needle")
    array_prepend = FunctionMethod("ARRAY_PREPEND", "addition")
    array_remove = FunctionMethod("ARRAY_REMOVE", "needle")
    array_reverse = FunctionMethod("ARRAY_REVERSE")
    array_slice = FunctionMethod("ARRAY_SLICE", "start_offset", "end_offset?")
    array_sort = FunctionMethod("ARRAY_SORT", "ascending_order?", "null_first?")
    array_union = FunctionMethod("ARRAY_UNION", "array")
    array_concat = FunctionMethod("ARRAY_CONCAT", "*arrays")
    array_max = FunctionMethod("ARRAY_MAX")
    array_join = FunctionMethod("ARRAY_JOIN", "delimiter", "null_replacement?")
    array_min = FunctionMethod("ARRAY_MIN")
    array_except = FunctionMethod("ARRAY_EXCEPT", "array")
    array_intersect = FunctionMethod("ARRAY_INTERSECT", "array")
    map_keys = FunctionProperty("MAP_KEYS")
    map_union = FunctionMethod("MAP_UNION", "*maps")
    map_values = FunctionProperty("MAP_VALUES")
    map_entries = FunctionProperty("MAP_ENTRIES")

    # Digests

    md5 = FunctionProperty("MD5")
    sha1 = FunctionProperty("SHA1")
    sha224 = FunctionProperty("SHA224")
    sha256 = FunctionProperty("SHA256")
    sha384 = FunctionProperty("SHA384")
    sha512 = FunctionProperty("SHA512")
    sha2 = FunctionMethod("SHA2", "hash_length")

    # JSON, objects

    json_quote = FunctionMethod("JSON_QUOTE")
    json_unquote = FunctionMethod("JSON_UNQUOTE")
    object_update = FunctionMethod("OBJECT_UPDATE", "*kv")

    # Bitmaps

    bitmap_and = FunctionMethod("BITMAP_AND", "bitmap2")
    bitmap_andnot = FunctionMethod("BITMAP_ANDNOT", "bitmap2")
    bitmap_and_agg = FunctionMethod("BITMAP_AND_AGG")
    bitmap_and_cardinality_agg = FunctionMethod("BITMAP_AND_CARDINALITY_AGG")
    bitmap_build = FunctionMethod("BITMAP_BUILD")
    bitmap_build_agg = FunctionMethod("BITMAP_BUILD_AGG")
    bitmap_build_cardinality_agg = FunctionMethod("BITMAP_BUILD_CARDINALITY_AGG")
    bitmap_cardinality = FunctionMethod("BITMAP_CARDINALITY")
    bitmap_from_bytes = FunctionMethod("BITMAP_FROM_BYTES")
    bitmap_or = FunctionMethod("BITMAP_OR", "bitmap2")
    bitmap_or_agg = FunctionMethod("BITMAP_OR_AGG")
    bitmap_or_cardinality_agg = FunctionMethod("BITMAP_OR_CARDINALITY_AGG")
    bitmap_to_array = FunctionMethod("BITMAP_TO_ARRAY")
    bitmap_to_bytes = FunctionMethod("BITMAP_TO_BYTES")
    bitmap_to_string = FunctionMethod("BITMAP_TO_STRING")
    bitmap_xor = FunctionMethod("BITMAP_XOR", "bitmap2")
    bitmap_xor_agg = FunctionMethod("BITMAP_XOR_AGG")
    bitmap_xor_cardinality_agg = FunctionMethod("BITMAP_XOR_CARDINALITY_AGG")
