"""Variables of the program as tables of SQL: ``sql_query("SELECT * FROM df")``.

A name that is no table or view may be a variable of whoever calls: a data frame of pandas or Polars, rows of Arrow, or
a :class:`Table`. Only the frame that calls is looked at, its local names and then its global ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from flowsql.table.syntax.build import ast
from flowsql.table.syntax.object_paths import split_path
from flowsql.table.syntax.rewrite import rewritten
from flowsql_core.catalog import ANONYMOUS
from flowsql_core.config import option, parse_bool
from flowsql_core.errors import BindError

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment
    from flowsql_core.span import Source

N = TypeVar("N", bound="ast.Node")

PYTHON_VARIABLES = option(
    "flowsql.python-variables",
    parse_bool,
    True,
    "Whether a name in the SQL of a program that is no table may be one of its variables: a data frame of pandas or "
    "Polars, an Arrow table, a Table.",
)

_MISSING: Final = object()


def with_variables(environment: TableEnvironment, statement: N, source: Source) -> N:
    """The statement with tables without a name in place of names that are variables of the caller.

    Raises:
        BindError: a variable is no table, or a view that outlives the program would read one.
    """
    unknown = _unknown(environment, statement)
    if not unknown or not environment.configuration.get(PYTHON_VARIABLES):
        return statement
    variables = _variables()
    found: dict[str, tuple[str, ...]] = {}
    for name in unknown:
        text = name.last.text
        value = variables.get(text, _MISSING)
        if value is _MISSING or text in found:
            continue
        if isinstance(statement, ast.CreateView) and not statement.temporary:
            raise BindError(
                "anonymous-in-view",
                f"The view '{statement.name}' would outlive the variable '{text}'.",
                name.span,
                "CREATE TEMPORARY VIEW keeps it for the session",
            ).within(source)
        try:
            found[text] = _table_of(environment, text, value, name)
        except BindError as error:
            error.at = error.at or name.span
            raise error.within(source) from None
    return _put(statement, found) if found else statement


def forget_variables(environment: TableEnvironment, statement: ast.Statement) -> None:
    """Let go of the rows that a statement read which has started, as nothing else can name them."""
    if not isinstance(statement, ast.QueryStatement | ast.Insert | ast.Explain):
        return
    for node in statement.walk():
        if isinstance(node, ast.TableRef | ast.ExplicitTable) and node.name.texts[0] == ANONYMOUS:
            environment.forget_anonymous(node.name.texts)


def _tables(node: ast.Node) -> Iterator[ast.Identifier]:
    """Names of one part in FROM, and where else rows of a table are read."""
    common = {part.name.text for part in node.walk() if isinstance(part, ast.CommonTable)}
    for part in node.walk():
        name = _name_in(part)
        if name is not None and name.last.text not in common:
            yield name


def _name_in(node: ast.Node) -> ast.Identifier | None:
    match node:
        case ast.TableRef(name) | ast.ExplicitTable(name):
            pass
        case ast.TableArgument(ast.Identifier() as name):
            pass
        case _:
            return None
    return None if isinstance(name, ast.FileName) or len(name.parts) > 1 else name


def _unknown(environment: TableEnvironment, statement: ast.Node) -> list[ast.Identifier]:
    catalogs = environment.catalogs
    return [name for name in _tables(statement) if catalogs.lookup(catalogs.qualify(name.texts)) is None]


def _variables() -> Mapping[str, Any]:
    """Names of the first frame that is not FlowSQL's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_own(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return {} if frame is None else {**frame.f_globals, **frame.f_locals}


def _is_own(module: str) -> bool:
    return module.partition(".")[0] in ("flowsql", "flowsql_planner", "flowsql_grammar", "flowsql_core")


def _table_of(environment: TableEnvironment, name: str, value: Any, at: ast.Identifier) -> tuple[str, ...]:
    """The path under which trees find the rows of a variable."""
    import pyarrow as pa

    from flowsql.table.table import Table
    from flowsql.table.values.input_columns import arrow_to_columns, pandas_to_columns

    if isinstance(value, Table):
        environment.require_own(value._environment, f"the variable '{name}'")
        return split_path(environment.name_of(value))
    if _is(value, "pandas", "DataFrame"):
        columns = pandas_to_columns(value, None)
    elif _is(value, "polars", "DataFrame"):
        columns = arrow_to_columns(value.to_arrow(), None)
    elif _is(value, "polars", "LazyFrame"):
        columns = arrow_to_columns(value.collect().to_arrow(), None)
    elif isinstance(value, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        columns = arrow_to_columns(value, None)
    elif _is(value, "pyarrow.dataset", "Dataset"):
        columns = arrow_to_columns(value.to_table(), None)
    else:
        raise BindError(
            "table-not-found",
            f"Object '{name}' not found: no table has this name, and the variable of this name is "
            f"{_with_article(type(value).__name__)}",
            at.span,
            "data frames of pandas or Polars, Arrow tables and Tables can be read"
            + (": from_elements(...) makes one of rows" if isinstance(value, list | tuple) else ""),
        )
    return environment.register_variable(name, *columns)


def _is(value: Any, module: str, name: str) -> bool:
    """Whether a value is of a class of a module, which is not imported to find out."""
    loaded = sys.modules.get(module)
    kind = None if loaded is None else getattr(loaded, name, None)
    return kind is not None and isinstance(value, kind)


def _with_article(word: str) -> str:
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} {word}"


def _put(statement: N, found: Mapping[str, tuple[str, ...]]) -> N:
    """The statement with paths in place of names; columns go on to be qualified with the names."""

    def path(name: ast.Identifier) -> ast.Identifier:
        parts = (ast.Name(part, span=name.span, quoted=True) for part in found[name.last.text])
        return ast.Identifier(tuple(parts), span=name.span)

    def change(node: ast.Node) -> ast.Node:
        name = _name_in(node)
        if name is None or name.last.text not in found:
            return node
        match node:
            case ast.TableRef(alias=None):
                alias = ast.TableAlias(ast.Name(name.last.text, span=name.span), span=name.span)
                return replace(node, name=path(name), alias=alias)
            case ast.TableRef() | ast.ExplicitTable():
                return replace(node, name=path(name))
            case ast.TableArgument():
                return replace(node, table=path(name))
        return node

    return cast(N, rewritten(statement, change))
