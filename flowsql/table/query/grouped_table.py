"""Tables between two methods: grouped, windowed, both, or with windows around each row. ``select`` makes a Table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from flowsql.common.public_api import public_api
from flowsql.table.expression import Expression
from flowsql.table.query.aggregated_table import (
    AggregatedTable,
    FlatAggregateTable,
    flat_call,
    result_columns,
)
from flowsql.table.query.modes import is_batch
from flowsql.table.query.projection import Projection, item_name, named, with_properties
from flowsql.table.query.row_functions import named_row_call
from flowsql.table.syntax.build import api_nodes, ast, column, select
from flowsql.table.syntax.method_text import Step
from flowsql.table.syntax.rewrite import placed, rewritten
from flowsql.table.window import GroupWindow, OverWindow
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.types.logical import is_proctime, is_rowtime, without_attribute

if TYPE_CHECKING:
    from flowsql.table.table import Table


@public_api
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


@public_api
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
        if is_batch(table._environment):
            self._table, self._window = window.over_moments(table)

    def group_by(self, *fields: Expression) -> WindowGroupedTable:
        """The window by its name, and further keys."""
        return WindowGroupedTable(self._table, self._step, self._window, fields)


@public_api
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
            parts = ("", "start", "end", "rowtime", "proctime")
            #: The group window, by the name "", and its properties by theirs.
            self._grouped = {part: placed(window.group(projection, part.upper()), before.whole) for part in parts}

    def _is_window(self, node: ast.Expression) -> bool:
        return isinstance(node, ast.ColumnRef) and node.path.texts == (self._window.alias,)

    def select(self, *fields: Expression) -> Table:
        """A row of each group and window: keys, aggregates, ``col("w").start`` and ``.end``."""
        table = self._table
        step = Step(self._step.source, "select", fields)
        with table._environment.located(step.source):
            chosen = named(table._projection(step).items(fields))
            meant = [_without_aliases(item.expression, self._keys) for item in chosen]
            chosen = [
                _changed(item, with_properties(expression, self._window.alias, self._grouped))
                for item, expression in zip(chosen, meant, strict=True)
            ]
        return self._of_groups(step, chosen)

    def _of_groups(self, step: Step, chosen: Sequence[ast.SelectItem]) -> Table:
        """A row of each group and window, of items in terms of the window's properties."""
        group_by = ast.GroupBy((self._grouped[""], *(key.expression for key in self._keys)))
        return self._table._then(step, replace(select(self._table._relation(), chosen), group_by=group_by))

    def aggregate(self, func: object) -> WindowAggregatedTable:
        """The fields of the ROW that an aggregate function makes of each group and window.

        Args:
            func: a call, ``f(col("a")).alias("x", "y")``, or a declared function that takes the whole row but its time.
        """
        table = self._table
        time = self._window.time_field._node
        schema = tuple(item for item in table._schema if not _is_column(time, item.name))
        call = named_row_call(func, schema, "aggregate")
        step = Step(self._step.source, "aggregate", (call,))
        with table._environment.located(step.source):
            projection = table._projection(step)
            (item,) = projection.items((call,))
            columns = result_columns(item, projection.type_of(item.expression), False)
        return WindowAggregatedTable(self, columns)

    def _select_of_results(self, results: Sequence[ast.SelectItem], fields: Sequence[Expression]) -> Table:
        """Fields of keys, of columns that a function made of each group, and of the window."""
        step = Step(self._step.source, "select", fields)
        asked = dict.fromkeys(
            node.field.text
            for field in fields
            for node in field._node.walk()
            if isinstance(node, ast.FieldAccess) and isinstance(node.field, api_nodes.WindowProperty)
        )
        # The names that Flink gives to them.
        columns = {part: column(f"EXPR${number}") for number, part in enumerate(asked)}
        with self._table._environment.located(step.source):
            items = [cast(ast.Expression, field._node) for field in fields]
            nodes = [with_properties(item, self._window.alias, columns) for item in items]
        read = [ast.SelectItem(self._grouped[part], made.path.last) for part, made in columns.items()]
        kept = [_changed(key, key.expression) for key in self._keys if item_name(key) is not None]
        return self._of_groups(step, [*kept, *results, *read]).select(*map(Expression, nodes))

    def flat_aggregate(self, func: object) -> object:
        """The rows that a table aggregate function makes of each group."""
        raise NotSupportedYetError("WindowGroupedTable.flat_aggregate")


@public_api
class WindowAggregatedTable(AggregatedTable):
    """Groups of rows in windows with the fields of what an aggregate function made of each."""

    def __init__(self, grouped: WindowGroupedTable, results: Sequence[ast.SelectItem]) -> None:
        self._grouped = grouped
        self._results = results

    def select(self, *fields: Expression) -> Table:
        """Columns of the keys and of the results, ``col("w").start`` and ``.end``."""
        return self._grouped._select_of_results(self._results, fields)


def _is_column(node: ast.Node, name: str) -> bool:
    return isinstance(node, ast.ColumnRef) and node.path.last.text == name


def _over_names(items: Sequence[ast.SelectItem]) -> Iterator[str]:
    """Names of the windows behind ``over``."""
    for item in items:
        for part in item.walk():
            if isinstance(part, ast.FunctionCall) and isinstance(part.over, ast.Name):
                yield part.over.text


@public_api
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
