"""The operator of a process table function, and the call that it carries out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from flowsql_core.expr import Expr
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.process_function import ChooseMode, Parameter, StateEntry
from flowsql_core.python_call import PythonFunction
from flowsql_core.record import record
from flowsql_core.row import INSERT_ONLY, ChangelogMode
from flowsql_core.span import Span
from flowsql_core.types.logical import Column, LogicalType, Schema, is_proctime, without_attribute


@record
class ProcessTable:
    """The table of an argument. Columns count within it.

    ``partition`` None: row semantics; () one partition of all rows. ``order``: (column, descending, nulls first), the
    first a time. ``through``: its columns stand in the output, instead of its partition's. ``columns``: their names, as
    the function sees them, whatever plans make of them.
    """

    name: str
    columns: tuple[str, ...]
    partition: tuple[int, ...] | None
    order: tuple[tuple[int, bool, bool], ...] = ()
    time_index: int | None = None
    through: bool = False


@record
class ProcessCall:
    """A call with everything that follows from the declaration.

    ``scalars``: constants for the parameters that are no tables, in their order; None: the declared default.
    ``result``: what the function makes. ``row_time``: type of the output's ``rowtime``; None without ``on_time``.
    ``uid``: None where nothing is kept and nobody asked for one. ``choose_mode``: chooses the changelog mode while the
    plan is made, in place of ``changelog_mode``; never part of the operator.
    """

    function: PythonFunction
    parameters: tuple[Parameter, ...]
    tables: tuple[ProcessTable, ...]
    scalars: tuple[Expr | None, ...]
    states: tuple[StateEntry, ...]
    has_timers: bool
    result: Schema
    row_time: LogicalType | None = None
    uid: str | None = None
    changelog_mode: ChangelogMode = INSERT_ONLY
    choose_mode: ChooseMode | None = field(default=None, compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def keeps_partitions(self) -> bool:
        """Whether rows are of partitions."""
        return any(table.partition is not None for table in self.tables)

    def output(self, inputs: Sequence[Schema]) -> Schema:
        """The columns of the output over tables with these columns, their names not yet made distinct."""
        made: list[Column] = []
        for table, schema in zip(self.tables, inputs, strict=True):
            shown = range(len(schema)) if table.through else table.partition or ()
            made += (_shown(schema[index], keep=table.through) for index in shown)
        made += self.result
        if self.row_time is not None:
            made.append(Column("rowtime", self.row_time))
        return tuple(made)

    def retyped(self, inputs: Sequence[Schema]) -> ProcessCall:
        """The call over tables whose columns have other types."""
        if self.row_time is None:
            return self
        index = self.tables[0].time_index
        assert index is not None
        return replace(self, row_time=inputs[0][index].type.as_nullable(False))


def _shown(column: Column, keep: bool) -> Column:
    """A time attribute stays one only where whole rows go on; processing time never does."""
    if keep and not is_proctime(column.type):
        return column
    return Column(column.name, without_attribute(column.type))


@record
class ProcessTableFunctionSpec(OperatorSpec):
    """Call a function for each row of its tables, and for its timers.

    ``inputs``: columns of each table. ``input_modes``: the kinds of change of each. ``ttl_ms``: of each state entry.
    """

    call: ProcessCall
    inputs: tuple[Schema, ...]
    input_modes: tuple[ChangelogMode, ...]
    output: Schema
    ttl_ms: tuple[int, ...] = ()
