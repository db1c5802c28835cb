"""``Table``: a query as a syntax tree, with the methods that build the next one.

Every method builds the tree that SQL's parser makes of the same query, and binds it at once: names and types are
checked where the method is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from flowsql.common.public_api import public_api
from flowsql.table.catalog.resolved_schema import ResolvedSchema
from flowsql.table.explain_detail import ExplainDetail as ExplainDetail
from flowsql.table.expression import Expression
from flowsql.table.query.aggregated_table import AggregatedTable, FlatAggregateTable
from flowsql.table.query.combined_tables import bare, body_of, check_columns, without_condition
from flowsql.table.query.grouped_table import GroupedTable as GroupedTable
from flowsql.table.query.grouped_table import GroupWindowedTable as GroupWindowedTable
from flowsql.table.query.grouped_table import OverWindowedTable as OverWindowedTable
from flowsql.table.query.grouped_table import WindowGroupedTable as WindowGroupedTable
from flowsql.table.query.projection import Projection, has_aggregates, item_name, named, with_properties
from flowsql.table.query.row_functions import named_row_call, row_call
from flowsql.table.query.runnable import RunnableQuery
from flowsql.table.query.sorted_queries import SORTED, inlined, inside, qualified, settled
from flowsql.table.query.table_functions import PartitionedTable, by_function, processed, table_argument
from flowsql.table.query.unresolved_names import fields
from flowsql.table.syntax.build import api_nodes, ast, column, path, select
from flowsql.table.syntax.method_text import Step
from flowsql.table.syntax.rewrite import placed
from flowsql.table.table_pipeline import TablePipeline
from flowsql.table.table_schema import TableSchema
from flowsql_core.catalog import CatalogTable
from flowsql_core.errors import BindError, did_you_mean

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment
    from flowsql.table.table_descriptor import TableDescriptor
    from flowsql.table.table_result import TableResult
    from flowsql.table.window import GroupWindow, OverWindow
    from flowsql_core.catalog import ObjectPath
    from flowsql_core.span import Source
    from flowsql_core.types.logical import Schema
    from flowsql_planner.logical.nodes import Rel

#: The ROW that map() opens.
_MAPPED = "mapped"
#: What map() calls a value that is no ROW.
_SINGLE = "f0"
#: The rows of a table function.
_LATERAL = "lateral_rows"

#: Queries and bodies of queries with their plans, by the id of the node.
Known = Mapping[int, "tuple[ast.Node, Rel]"]


@public_api
class Table(RunnableQuery):
    """The rows of a query, not run yet. Made by a :class:`TableEnvironment` and by the methods of other tables."""

    def __init__(
        self,
        environment: TableEnvironment,
        query: ast.Query,
        source: Source,
        limits: bool = False,
        known: Known | None = None,
    ) -> None:
        super().__init__(environment, query, source)
        #: Whether order_by(), offset() or fetch() made the query: what follows of them goes into it.
        self._limits = limits
        #: The table of the catalog that this is, all of it.
        self.path: ObjectPath | None = None
        #: What was bound before the query was: only the last method of a chain is bound anew.
        self._known: Known = known or {}
        self._rel: Rel = environment.plan_of(query, source, self._known)
        self._schema: Schema = self._rel.schema

    def __getattr__(self, name: str) -> Expression:
        if name.startswith(("_j_", "get_j_")):
            raise AttributeError(f"'{name}' does not exist: there is no JVM behind a Table; explain() shows its plan")
        if name.startswith("_") or name not in self._names():
            columns = ", ".join(self._names())
            raise AttributeError(f"The current table has no column named '{name}', available columns: [{columns}]")
        return Expression(column(name))

    def __str__(self) -> str:
        """A name for SQL: the table becomes a temporary view, so that ``f"SELECT * FROM {table}"`` works."""
        return self._environment.name_of(self)

    def __repr__(self) -> str:
        columns = ", ".join(f"{column.name} {column.type}" for column in self._schema)
        return f"Table({columns})"

    def _names(self) -> list[str]:
        return [column.name for column in self._schema]

    # Columns and rows

    def select(self, *fields: Expression) -> Table:
        """These columns: ``SELECT fields FROM table``. Aggregates among them are over all rows."""
        step, items = self._resolved("select", fields)
        return self._projected(step, items)

    def where(self, predicate: Expression) -> Table:
        """The rows for which the predicate is TRUE."""
        return self._filtered("where", predicate)

    def filter(self, predicate: Expression) -> Table:
        """See :meth:`where`."""
        return self._filtered("filter", predicate)

    def alias(self, field: str, *fields: str) -> Table:
        """The first columns under other names."""
        step = self._step("alias", (field, *fields))
        names = [field, *fields]
        if not all(isinstance(name, str) for name in names):
            raise self._refused(step, "not-a-name", "alias() takes names of columns: alias('a', 'b').")
        if len(names) > len(self._schema):
            raise self._refused(step, "alias-columns", "Aliasing more fields than we actually have.")
        return self._renamed(step, [*names, *self._names()[len(names) :]])

    def add_columns(self, *fields: Expression) -> Table:
        """All columns and these behind them; names must be new."""
        step, items = self._resolved("add_columns", fields)
        return self._projected(step, [*self._all(), *items])

    def add_or_replace_columns(self, *fields: Expression) -> Table:
        """All columns; these take the place of columns of their names, or stand behind."""
        step, items = self._resolved("add_or_replace_columns", fields)
        made: dict[str, ast.SelectItem] = dict(zip(self._names(), self._all(), strict=True))
        for position, item in enumerate(items):
            made[item_name(item) or f"_c{len(self._schema) + position}"] = item
        return self._projected(step, list(made.values()))

    def rename_columns(self, *fields: Expression) -> Table:
        """Columns under other names: ``rename_columns(col("a").alias("b"))``."""
        step, items = self._resolved("rename_columns", fields)
        names = self._names()
        for item in items:
            if item.alias is None or not isinstance(item.expression, ast.ColumnRef):
                raise self._refused(
                    step, "bad-rename", "Unexpected field expression in renameColumns.", "col('a').alias('b')"
                )
            names[self._place(item.expression, step)] = item.alias.text
        return self._renamed(step, names)

    def drop_columns(self, *fields: Expression) -> Table:
        """All columns but these."""
        step, items = self._resolved("drop_columns", fields)
        gone = set()
        for item in items:
            if not isinstance(item.expression, ast.ColumnRef):
                raise self._refused(step, "bad-drop", "Unexpected field expression in dropColumns.", "col('a')")
            if item.expression.path.last.text not in self._names():
                name = item.expression.path.last.text
                hint = did_you_mean(name, self._names())
                raise self._refused(step, "column-not-found", f"Field {name} does not exist in source table", hint)
            gone.add(self._place(item.expression, step))
        kept = [item for place, item in enumerate(self._all()) if place not in gone]
        if not kept:
            raise self._refused(step, "no-columns", "drop_columns() would leave no column.")
        return self._projected(step, kept)

    def distinct(self) -> Table:
        """Each row once."""
        step = self._step("distinct", ())
        return self._then(step, replace(select(self._relation()), quantifier=ast.SetQuantifier.DISTINCT))

    # Groups and windows

    def group_by(self, *fields: Expression) -> GroupedTable:
        """Groups of rows with equal keys; ``select`` on the result makes a row of each."""
        return GroupedTable(self, fields)

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """Windows in time: ``window(Tumble.over(lit(5).minutes).on(col("ts")).alias("w")).group_by(col("w"))``."""
        return GroupWindowedTable(self, window)

    def over_window(self, *over_windows: OverWindow) -> OverWindowedTable:
        """Windows around each row: ``over_window(Over.partition_by(...).order_by(...).alias("w"))``."""
        return OverWindowedTable(self, over_windows)

    # Two tables

    def join(self, right: Table, join_predicate: Expression | None = None) -> Table:
        """Pairs of rows for which the predicate is TRUE; all pairs without one."""
        return self._joined("join", right, ast.JoinKind.INNER, join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Expression | None = None) -> Table:
        """The same, and left rows without a partner beside NULLs."""
        return self._joined("left_outer_join", right, ast.JoinKind.LEFT, join_predicate)

    def right_outer_join(self, right: Table, join_predicate: Expression) -> Table:
        """The same with right rows."""
        return self._joined("right_outer_join", right, ast.JoinKind.RIGHT, join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Expression) -> Table:
        """The same with rows of both sides."""
        return self._joined("full_outer_join", right, ast.JoinKind.FULL, join_predicate)

    def join_lateral(self, table_function_call: object, join_predicate: Expression | None = None) -> Table:
        """Each row beside the rows that a table function makes of it."""
        made = named_row_call(table_function_call, self._schema, "join_lateral")
        return self._lateral("join_lateral", ast.JoinKind.INNER, made, join_predicate)

    def left_outer_join_lateral(self, table_function_call: object, join_predicate: Expression | None = None) -> Table:
        """The same, and rows of which the function makes none beside NULLs."""
        made = named_row_call(table_function_call, self._schema, "left_outer_join_lateral")
        return self._lateral("left_outer_join_lateral", ast.JoinKind.LEFT, made, join_predicate)

    def union(self, right: Table) -> Table:
        """The rows of both, each once."""
        return self._combined("union", right, ast.SetOperator.UNION)

    def union_all(self, right: Table) -> Table:
        """The rows of both."""
        return self._combined("union_all", right, ast.SetOperator.UNION, all_rows=True)

    def minus(self, right: Table) -> Table:
        """The rows that are not in the other table, each once."""
        return self._combined("minus", right, ast.SetOperator.EXCEPT)

    def minus_all(self, right: Table) -> Table:
        """The rows as often as they stand here more often than in the other table."""
        return self._combined("minus_all", right, ast.SetOperator.EXCEPT, all_rows=True)

    def intersect(self, right: Table) -> Table:
        """The rows that are in both, each once."""
        return self._combined("intersect", right, ast.SetOperator.INTERSECT)

    def intersect_all(self, right: Table) -> Table:
        """The rows as often as they are in both."""
        return self._combined("intersect_all", right, ast.SetOperator.INTERSECT, all_rows=True)

    # Order

    def order_by(self, *fields: Expression) -> Table:
        """Sorted rows: ``order_by(col("a").desc)``; ``fetch`` and ``offset`` behind it cut the sorted rows."""
        step = self._step("order_by", fields)
        projection = self._projection(step)
        with self._environment.located(step.source):
            items = [projection.order_item(field, place) for place, field in enumerate(fields)]
        keys = tuple(qualified(item, self._names()) for item in items)
        from_ = ast.DerivedTable(self._query, alias=ast.TableAlias(ast.Name(SORTED)))
        return self._then(step, select(from_), order_by=keys, limits=True)

    def offset(self, offset: int) -> Table:
        """Without the first rows."""
        step = self._step("offset", (offset,))
        if self._limits and self._query.limit is not None:
            raise self._refused(step, "limit-twice", "FETCH is already defined.")
        if self._limits and self._query.offset is not None:
            raise self._refused(step, "limit-twice", "OFFSET already defined.")
        return self._limited(step, offset=_rows(step, "Offset", offset))

    def fetch(self, fetch: int) -> Table:
        """The first rows."""
        step = self._step("fetch", (fetch,))
        if self._limits and self._query.limit is not None:
            raise self._refused(step, "limit-twice", "FETCH is already defined.")
        return self._limited(step, limit=_rows(step, "Fetch", fetch))

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """``offset(offset).fetch(fetch)``."""
        return (self.offset(offset) if offset else self).fetch(fetch)

    # Functions over whole rows

    def map(self, func: object) -> Table:
        """The fields of the ROW that a scalar function makes of each row: a call, or a ``udf`` that takes the row."""
        made = row_call(func, self._schema, "map")
        step, items = self._resolved("map", (made,))
        if isinstance(items[0].expression, ast.RowConstructor):
            return self._projected(step, self._projection(step).items((made.flatten,)))
        rows = self._projected(step, [ast.SelectItem(items[0].expression, ast.Name(_MAPPED))])
        outer = Step(step.source, "map", (Expression(column(_MAPPED)),))
        flat = Projection(self._environment, rows._schema, outer).items((Expression(column(_MAPPED)).flatten,))
        prefix = f"{_MAPPED}$"
        names = [(item_name(item) or "").removeprefix(prefix) for item in flat]
        if names == [_MAPPED]:
            # A value that is no ROW is one column, under Flink's name for it unless the call has one.
            own = items[0].alias or ast.Name(_SINGLE, quoted=True)
            return self._projected(step, [ast.SelectItem(items[0].expression, own)])
        fields = [
            ast.SelectItem(item.expression, ast.Name(name, quoted=True)) for item, name in zip(flat, names, strict=True)
        ]
        return rows._projected(outer, fields)

    def flat_map(self, func: object) -> Table:
        """The rows that a table function makes of each row: a call, or a ``udtf`` that takes the row."""
        made = row_call(func, self._schema, "flat_map")
        return self._lateral("flat_map", ast.JoinKind.INNER, made, None, only_rows=True)

    def aggregate(self, func: object) -> AggregatedTable:
        """The fields of the ROW that an aggregate function makes of all rows; ``select`` makes a table of them."""
        return GroupedTable(self, ()).aggregate(func)

    def flat_aggregate(self, func: object) -> FlatAggregateTable:
        """The rows that a table aggregate function makes of all rows; ``select`` makes a table of them."""
        return GroupedTable(self, ()).flat_aggregate(func)

    def to_changelog(self, *arguments: Expression) -> Table:
        """The changes as rows with a column ``op`` that tells their kind.

        Arguments are named: ``descriptor("code").as_argument("op")`` is the column,
        ``map_("INSERT, UPDATE_AFTER", "c", "DELETE", "d").as_argument("op_mapping")`` what it says.
        """
        return by_function(self, "to_changelog", arguments)

    def from_changelog(self, *arguments: Expression) -> Table:
        """Rows with a column that tells their kind, as changes; arguments as of :meth:`to_changelog`."""
        return by_function(self, "from_changelog", arguments)

    def partition_by(self, *fields: Expression) -> PartitionedTable:
        """The rows in partitions, for a function that takes them so: ``partition_by(col("k")).process(f)``."""
        return PartitionedTable(self, fields)

    def process(self, func: object, *arguments: object) -> Table:
        """What a process table function makes of the rows, each for itself; ``arguments`` stand behind the table."""
        return processed(self, func, arguments)

    def as_argument(self, name: str) -> Expression:
        """``name => TABLE t``, for ``TableEnvironment.from_call``."""
        return Expression(ast.NamedArgument(ast.Name(name), table_argument(self)))

    # What it is

    def get_resolved_schema(self) -> ResolvedSchema:
        """Names and types of the columns; of a table of the catalog also how they come about, watermark and key."""
        found = None if self.path is None else self._environment.catalogs.lookup(self.path)
        if found is not None and isinstance(found.value, CatalogTable):
            return ResolvedSchema.of_table(found.value, self._schema)
        return ResolvedSchema.of_result(self._schema)

    def get_schema(self) -> TableSchema:
        """Names and types of the columns, in PyFlink's old form."""
        schema = self.get_resolved_schema()
        return TableSchema(schema.get_column_names(), schema.get_column_data_types())

    def print_schema(self) -> None:
        """Write names and types to standard output."""
        print(self.get_resolved_schema())

    # Into another table

    def execute_insert(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TableResult:
        """Write the rows to a table; ``wait()`` on the result waits for the end."""
        return self.insert_into(table_path_or_descriptor, overwrite).execute()

    def insert_into(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TablePipeline:
        """The way of the rows into a table, to be run, explained or added to a statement set."""
        target = self._environment.sink_path(table_path_or_descriptor, self)
        return TablePipeline(self._environment, ast.Insert(target, self._query, overwrite=overwrite), self.source)

    # How trees grow

    def as_operand(self) -> ast.Query:
        """The query as part of an expression: ``col("a").in_(table)``."""
        body = self._query
        return api_nodes.TableQuery(
            body.body, body.ctes, body.order_by, body.offset, body.limit, body.recursive, environment=self._environment
        )

    def _step(self, method: str, args: Sequence[object]) -> Step:
        return Step(self.source, method, args)

    def _projection(self, step: Step) -> Projection:
        return Projection(self._environment, self._schema, step)

    def _resolved(self, method: str, fields: Sequence[object]) -> tuple[Step, list[ast.SelectItem]]:
        step = self._step(method, fields)
        with self._environment.located(step.source):
            items = self._projection(step).items(fields)
            for item in items:
                with_properties(item.expression, None)
            return step, items

    def _refused(self, step: Step, code: str, message: str, hint: str | None = None) -> BindError:
        return BindError(code, message, step.whole, hint).within(step.source)

    def _all(self) -> list[ast.SelectItem]:
        return [ast.SelectItem(column(name)) for name in self._names()]

    def _place(self, node: ast.ColumnRef, step: Step) -> int:
        names, name = self._names(), node.path.last.text
        if name in names:
            return names.index(name)
        message = f"Cannot resolve field [{name}], input field list:[{', '.join(names)}]."
        raise BindError("column-not-found", message, node.span, did_you_mean(name, names)).within(step.source)

    def _relation(self) -> ast.Relation:
        """The table in FROM: its name where it is just one, else its query in brackets."""
        query = self._query
        match query.body:
            case ast.Select((ast.SelectItem(ast.Star()),), ast.TableRef() as table) if query == bare(table):
                return table
        return ast.DerivedTable(query)

    def _then(
        self,
        step: Step,
        body: ast.QueryBody,
        order_by: tuple[ast.OrderItem, ...] = (),
        limits: bool = False,
        further: Sequence[ast.Node] = (),
        known: Known | None = None,
        names: Sequence[str] = (),
    ) -> Table:
        """The table of a query over this one; ``further`` trees of others, bound as ``known``, keep their places."""
        query = step.fill(ast.Query(body, order_by=order_by), self._query, *further)
        known = {**self._plans(self._query), **(known or {})}
        with fields(names or self._names()):
            return Table(self._environment, query, step.source, limits, known)

    def _plans(self, query: ast.Query) -> Known:
        """What binding need not look into again where ``query``, this table's own or a copy of it, is an operand."""
        if query.order_by and query.limit is None and query.offset is None:
            # An operand is not sorted: it is bound without its order, over the same input.
            return self._known if query is self._query else {}
        known: dict[int, tuple[ast.Node, Rel]] = {id(query): (query, self._rel)}
        if body_of(query) is query.body:
            known[id(query.body)] = (query.body, self._rel)
        if isinstance(query.body, ast.SetOperation) and query is self._query:
            # A chain of UNION is bound as one: it asks for each of its operands.
            known |= self._known
        return known

    def _sorts(self) -> bool:
        """Whether there is an order without a limit. What follows goes below it: sorting comes last, as in Flink."""
        cut = self._query.limit is not None or self._query.offset is not None
        return self._limits and not cut and isinstance(self._query.body, ast.Select)

    def _projected(self, step: Step, items: Sequence[ast.SelectItem]) -> Table:
        """Columns of this table, named."""
        with self._environment.located(step.source):
            items = named(items)
        if not self._sorts() or has_aggregates(items):
            return self._then(step, select(self._relation(), items))
        query, body = settled(self._query)
        with self._environment.located(step.source):
            chosen = tuple(inlined(item, body) for item in items)
        return self._sorted(step, replace(query, body=replace(body, items=chosen)))

    def _sorted(self, step: Step, query: ast.Query) -> Table:
        """The table of a sorted query that took something in."""
        body = self._query.body
        before = (body.from_,) if isinstance(body, ast.Select) and body.from_ is not None else ()
        return Table(self._environment, step.fill(query, *before), step.source, True, self._known)

    def _renamed(self, step: Step, names: Sequence[str]) -> Table:
        items = [
            ast.SelectItem(column(old), None if old == new else ast.Name(new, quoted=True))
            for old, new in zip(self._names(), names, strict=True)
        ]
        return self._projected(step, items)

    def _filtered(self, method: str, predicate: object) -> Table:
        step = self._step(method, (predicate,))
        with self._environment.located(step.source):
            projection = self._projection(step)
            condition = projection.condition(predicate, 0)
        if not self._sorts():
            return self._then(step, select(self._relation(), where=condition))
        query, body = settled(self._query)
        with self._environment.located(step.source):
            condition = inside(condition, body)
        if body.where is not None:
            condition = ast.BinaryOp(ast.BinaryOperator.AND, body.where, condition)
        return self._sorted(step, replace(query, body=replace(body, where=condition)))

    def _limited(
        self, step: Step, offset: ast.NumberLiteral | None = None, limit: ast.NumberLiteral | None = None
    ) -> Table:
        """The same rows cut: into the query that sorts or was cut before, else around this one."""
        inner = self._query if self._limits else ast.Query(select(self._relation()))
        made = replace(inner, offset=offset or inner.offset, limit=limit or inner.limit)
        if not self._limits:
            return Table(self._environment, step.fill(made, self._query), step.source, True, self._plans(self._query))
        query = step.fill(made, self._query.body)
        return Table(self._environment, query, step.source, True, self._known)

    def _other(self, step: Step, right: object) -> Table:
        if not isinstance(right, Table):
            raise self._refused(step, "not-a-table", f"{step.method}() takes a Table, got {right!r}.")
        with self._environment.located(step.source):
            self._environment.require_own(right._environment, step.method)
        return right

    def _joined(self, method: str, right: Table, kind: ast.JoinKind, predicate: object) -> Table:
        step = self._step(method, (_Shown("right"),) if predicate is None else (_Shown("right"), predicate))
        other = self._other(step, right)
        twice = [name for name in self._names() if name in other._names()]
        if twice:
            raise self._refused(
                step,
                "ambiguous-names",
                f"join relations with ambiguous names: [{', '.join(twice)}]",
                "rename_columns(...) or alias(...) on one side",
            )
        both = (*self._schema, *other._schema)
        with self._environment.located(step.source):
            projection = Projection(self._environment, both, step)
            on = None if predicate is None else projection.condition(predicate, 1)
        if on is None:
            kind, on = without_condition(kind)
        query = step.at(0, other._query)
        join = ast.Join(ast.DerivedTable(self._query), ast.DerivedTable(query), kind, on=on)
        return self._then(step, select(join), further=(query,), known=other._plans(query), names=[c.name for c in both])

    def _lateral(
        self, method: str, kind: ast.JoinKind, function: object, predicate: object, only_rows: bool = False
    ) -> Table:
        step = self._step(method, (function,) if predicate is None else (function, predicate))
        with self._environment.located(step.source):
            projection = self._projection(step)
            item = step.at(0, projection.known(projection.expression(function)._node))
            call = item.expression if isinstance(item, ast.SelectItem) else item
            if not isinstance(call, ast.FunctionCall):
                raise BindError("not-a-function", f"{method}() takes a call of a table function.", step.spans[0])
            on = None if predicate is None else projection.value(predicate, 1)
        if on is None:
            kind, on = without_condition(kind)
        names: tuple[ast.Name, ...] = ()
        if isinstance(item, ast.SelectItem) and item.alias is not None:
            names = (item.alias, *(item.further if isinstance(item, api_nodes.Aliased) else ()))
        twice = [] if only_rows else [name.text for name in names if name.text in self._names()]
        if twice:
            raise self._refused(step, "ambiguous-names", f"join relations with ambiguous names: [{', '.join(twice)}]")
        alias = ast.TableAlias(ast.Name(_LATERAL), names)
        rows = ast.TableFunction(call, True, alias)
        join = ast.Join(ast.DerivedTable(self._query), rows, kind, on=on)
        what = [ast.SelectItem(ast.Star(path(_LATERAL)))] if only_rows else None
        return self._then(step, select(join, what))

    def _combined(self, method: str, right: Table, operator: ast.SetOperator, all_rows: bool = False) -> Table:
        step = self._step(method, (_Shown("right"),))
        query = step.at(0, self._other(step, right)._query)
        with self._environment.located(step.source):
            check_columns(self._schema, right._schema, operator, step.whole)
        body = ast.SetOperation(operator, body_of(self._query), body_of(query), all_rows)
        further = (body_of(self._query), body_of(query))
        return self._then(step, body, further=further, known=right._plans(query))


class _Shown:
    """An argument that is shown by a word."""

    def __init__(self, word: str) -> None:
        self._word = word

    def __str__(self) -> str:
        return self._word


def _rows(step: Step, what: str, count: object) -> ast.NumberLiteral:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise BindError("bad-row-count", f"{what} should be greater or equal 0, got {count!r}.", step.whole).within(
            step.source
        )
    return placed(ast.NumberLiteral(str(count)), step.whole)
