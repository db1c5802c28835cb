"""Tables between two methods: grouped, windowed, both, or with windows around each row. ``select`` makes a Table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from flowsql.table.expression import Expression
from flowsql.table.query.aggregated_table import (
    AggregatedTable,
    FlatAggregateTable,
    flat_call,
    result_columns,
)
from flowsql.table.query.projection import Projection, item_name, named, with_properties
from flowsql.table.query.row_functions import named_row_call
from flowsql.table.syntax.build import ast, column, select
from flowsql.table.syntax.method_text import Step
from flowsql.table.syntax.rewrite import placed, rewritten
from flowsql.table.window import GroupWindow, OverWindow
from flowsql_core.config import RUNTIME_MODE, RuntimeMode
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.types.logical import is_proctime, is_rowtime, without_attribute

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment
    from flowsql.table.table import Table
    from flowsql_planner.logical.nodes import Rel


class GroupedTable:
    """Groups of rows with equal keys."""

    def __init__(self, table: Table, keys: Sequence[Expression]) -> None:
        self._table = table
        self._step = table._step("group_by", keys)
        with table._environment.located(self._step.source):
            self._keys = table._projection(self._step).items(keys)

    def select(self, *fields: Expression) -> Table:
        """A row of each group: keys and aggregates."""
        table = self._table
        step = Step(self._step.source, "select", fields)
        with table._environment.located(step.source):
            chosen = named(table._projection(step).items(fields))
            for item in chosen:
                with_properties(item.expression, None)
        chosen = [_changed(item, _without_aliases(item.expression, self._keys)) for item in chosen]
        grouping = tuple(item.expression for item in self._keys)
        group_by = ast.GroupBy(grouping) if grouping else None
        return table._then(step, replace(select(table._relation(), chosen), group_by=group_by))

    def aggregate(self, func: object) -> AggregatedTable:
        """The fields of the ROW that an aggregate function makes of each group.

        Args:
            func: a call, ``f(col("a")).alias("x", "y")``, or a declared function that takes the whole row.
        """
        return AggregatedTable(self._with_results("aggregate", func))

    def flat_aggregate(self, func: object) -> FlatAggregateTable:
        """The rows that a table aggregate function makes of each group.

        Args:
            func: as of :meth:`aggregate`.
        """
        return FlatAggregateTable(self._with_results("flat_aggregate", func))

    def _with_results(self, method: str, func: object) -> Table:
        """Keys, and the columns of what a function makes of each group."""
        table = self._table
        flat = method == "flat_aggregate"
        call = named_row_call(func, table._schema, method)
        step = Step(self._step.source, method, (call,))
        with table._environment.located(step.source):
            projection = table._projection(step)
            (item,) = projection.items((flat_call(call) if flat else call,))
            columns = result_columns(item, projection.type_of(item.expression), flat)
        kept = [_changed(key, key.expression) for key in self._keys if item_name(key) is not None]
        grouping = tuple(key.expression for key in self._keys)
        group_by = ast.GroupBy(grouping) if grouping else None
        return table._then(step, replace(select(table._relation(), [*kept, *columns]), group_by=group_by))


def _changed(item: ast.SelectItem, expression: ast.Expression) -> ast.SelectItem:
    """The item with another expression under the same name."""
    return ast.SelectItem(expression, item.alias or ast.Name(item_name(item) or "", quoted=True), span=item.span)


def _without_aliases(node: ast.Expression, keys: Sequence[ast.SelectItem]) -> ast.Expression:
    """An expression with keys that have a name of their own in the place of it: ``group_by((x % 2).alias("k"))``."""
    aliases = {key.alias.text: key.expression for key in keys if key.alias is not None}

    def meant(part: ast.Node) -> ast.Node:
        if isinstance(part, ast.ColumnRef) and len(part.path.parts) == 1 and part.path.last.text in aliases:
            return placed(aliases[part.path.last.text], part.span)
        return part

    return cast(ast.Expression, rewritten(node, meant)) if aliases else node


#: Properties of windows as columns of the window's table function, which batch mode has.
_FUNCTION_COLUMNS: Final[Mapping[str, ast.Expression]] = {
    "start": column("window_start"),
    "end": column("window_end"),
    "rowtime": column("window_time"),
    "proctime": column("window_time"),
}


def is_batch(environment: TableEnvironment) -> bool:
    """Whether an environment is in batch mode."""
    return environment.get_config().get(RUNTIME_MODE.key, RUNTIME_MODE.default.value).upper() == RuntimeMode.BATCH.name


class GroupWindowedTable:
    """Rows in windows that still lack their keys."""

    def __init__(self, table: Table, window: GroupWindow) -> None:
        self._table = table
        self._step = table._step("window", (window,))
        if not isinstance(window, GroupWindow):
            raise table._refused(
                self._step, "bad-window", f"window() takes a window with a name, got {window!r}.",
                "Tumble.over(lit(5).minutes).on(col('ts')).alias('w')"
            )  # fmt: skip
        self._window = window

    def group_by(self, *fields: Expression) -> WindowGroupedTable:
        """The window by its name, and further keys."""
        return WindowGroupedTable(self._table, self._step, self._window, fields)


class WindowGroupedTable:
    """Groups of rows in windows."""

    def __init__(self, table: Table, before: Step, window: GroupWindow, keys: Sequence[Expression]) -> None:
        self._table = table
        self._window = window
        self._step = Step(before.source, "group_by", keys)
        with table._environment.located(self._step.source):
            chosen = Projection(table._environment, table._schema, self._step).items(keys)
            self._keys = [key for key in chosen if not self._is_window(key.expression)]
            if len(self._keys) == len(chosen):
                raise BindError(
                    "no-window", "GroupBy must contain exactly one window alias.", self._step.whole,
                    f"the window is col('{window.alias}')",
                )  # fmt: skip
            projection = Projection(table._environment, table._schema, before)
            self._grouped = None if is_batch(table._environment) else self._group_window(projection, before)
            if self._grouped is None:
                data = ast.TableArgument(self._data(), self._partition())
                call = window.call(data, projection)
                self._call = placed(call, before.whole) if not isinstance(data.table, ast.Query) else call

    def _group_window(self, projection: Projection, before: Step) -> dict[str, ast.Expression]:
        """The group window, by the name "", and its properties by theirs."""
        parts = ("", "start", "end", "rowtime", "proctime")
        return {part: placed(self._window.group(projection, part.upper()), before.whole) for part in parts}

    def _is_window(self, node: ast.Expression) -> bool:
        return isinstance(node, ast.ColumnRef) and node.path.texts == (self._window.alias,)

    def _data(self) -> ast.Identifier | ast.Query:
        """What the window function reads: a table by its name, else a query."""
        relation = self._table._relation()
        if isinstance(relation, ast.TableRef) and not relation.hints and relation.period is None:
            return relation.name
        return self._table._query

    def _partition(self) -> tuple[ast.Expression, ...]:
        """Sessions are each key's own."""
        if self._window.function != "SESSION":
            return ()
        return tuple(key.expression for key in self._keys)

    def select(self, *fields: Expression) -> Table:
        """A row of each group and window: keys, aggregates, ``col("w").start`` and ``.end``."""
        table = self._table
        step = Step(self._step.source, "select", fields)
        with table._environment.located(step.source):
            chosen = named(table._projection(step).items(fields))
            properties = self._grouped or _FUNCTION_COLUMNS
            chosen = [
                _changed(
                    item,
                    with_properties(_without_aliases(item.expression, self._keys), self._window.alias, properties),
                )
                for item in chosen
            ]
        keys = tuple(key.expression for key in self._keys)
        if self._grouped is not None:
            group_by = ast.GroupBy((self._grouped[""], *keys))
            return table._then(step, replace(select(table._relation(), chosen), group_by=group_by))
        bounds = [column("window_start"), column("window_end")]
        if any(node == column("window_time") for item in chosen for node in item.walk()):
            bounds.append(column("window_time"))
        from_ = ast.TableFunction(self._call)
        made = table._then(step, replace(select(from_, chosen), group_by=ast.GroupBy((*bounds, *keys))))
        self._check_step(made._rel)
        return made

    def _check_step(self, rel: Rel) -> None:
        """Batch mode has SQL's HOP, which wants a length that is a multiple of the step; Flink's Slide takes any."""
        from flowsql_planner.logical.nodes import WindowTableFunction, inputs

        while not isinstance(rel, WindowTableFunction):
            (rel,) = inputs(rel)
        if self._window.function == "HOP" and rel.size_ms % rel.step_ms:
            construct = f"Slide with a length ({rel.size_ms} ms) that is no multiple of its step ({rel.step_ms} ms)"
            raise NotSupportedYetError(construct, self._step.whole).within(self._step.source)

    def aggregate(self, func: object) -> object:
        """The fields of the ROW that an aggregate function makes of each group."""
        raise NotSupportedYetError("WindowGroupedTable.aggregate", hint="select(...) takes aggregates")

    def flat_aggregate(self, func: object) -> object:
        """The rows that a table aggregate function makes of each group."""
        raise NotSupportedYetError("WindowGroupedTable.flat_aggregate")


def _over_names(items: Sequence[ast.SelectItem]) -> Iterator[str]:
    """Names of the windows behind ``over``."""
    for item in items:
        for part in item.walk():
            if isinstance(part, ast.FunctionCall) and isinstance(part.over, ast.Name):
                yield part.over.text


class OverWindowedTable:
    """A table with windows around each row."""

    def __init__(self, table: Table, windows: Sequence[OverWindow]) -> None:
        self._table = table
        self._step = table._step("over_window", windows)
        for window in windows:
            if not isinstance(window, OverWindow):
                raise table._refused(
                    self._step, "bad-window", f"over_window() takes windows with names, got {window!r}.",
                    "Over.partition_by(col('k')).order_by(col('ts')).alias('w')"
                )  # fmt: skip
        with table._environment.located(self._step.source):
            projection = table._projection(self._step)
            self._windows = {window.alias: window.spec(projection, i) for i, window in enumerate(windows)}

    def select(self, *fields: Expression) -> Table:
        """A row of each row; ``col("a").sum.over(col("w"))`` is over its window."""
        table = self._table
        step = Step(self._step.source, "select", fields)
        with table._environment.located(step.source):
            chosen = named(table._projection(step).items(fields))
            opened = [replace(item, expression=self._opened(item.expression)) for item in chosen]
        for name in dict.fromkeys(_over_names(chosen)):
            if name in self._windows:
                self._check_order(name)
        return table._then(step, select(table._relation(), opened))

    def _check_order(self, name: str) -> None:
        """BindError where a window is not ordered by a time attribute; in batch mode row times are plain timestamps."""
        table, spec = self._table, self._windows[name]
        item = ast.SelectItem(spec.order_by[0].expression)
        type_ = table._then(self._step, select(table._relation(), [item]))._schema[0].type
        if is_proctime(type_) or (is_rowtime(type_) and not is_batch(table._environment)):
            return
        plain = without_attribute(type_).as_nullable()
        raise table._refused(
            self._step, "over-order", f"Second argument in OVER window must be a TIME ATTRIBUTE, but is: {plain}",
            "SQL orders OVER by any column"
        )  # fmt: skip

    def _opened(self, node: ast.Expression) -> ast.Expression:
        """An expression with the definition of each window in the place of its name."""

        def open_window(part: ast.Node) -> ast.Node:
            if not isinstance(part, ast.FunctionCall) or not isinstance(part.over, ast.Name):
                return part
            spec = self._windows.get(part.over.text)
            if spec is None:
                raise BindError("no-window", f"Window '{part.over.text}' not found", part.span)
            return replace(part, over=spec)

        return cast(ast.Expression, rewritten(node, open_window))
