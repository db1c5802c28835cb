"""Pattern recognition."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_compute.eval.stack import stack_programs
from flowsql_core.expr import Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.match_specs import (
    MatchSkip,
    MatchSpec,
    MatchTime,
    PatternAggregate,
    PatternColumn,
    PatternExpression,
    PatternRead,
    PatternVariable,
)
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_planner.logical.expression_text import ExpressionPrinter
from flowsql_planner.physical.nodes.base import Connectors, InsertOnly, JobContext, named
from flowsql_planner.physical.nodes.line import Attributes, order_text
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.keys import NO_KEYS, Keys
from flowsql_planner.traits.lineage import call_text, placed, short, united
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class MatchNode(InsertOnly):
    """MATCH_RECOGNIZE with ONE ROW PER MATCH; its input is an Exchange. Fields as of ``Match``."""

    partition: tuple[int, ...]
    order: tuple[tuple[int, bool, bool], ...]
    row_time: bool
    variables: tuple[PatternVariable, ...]
    computed: tuple[Expr, ...]
    measures: tuple[PatternExpression, ...]
    skip: MatchSkip
    skip_variable: int | None
    within_ms: int | None
    empty: tuple[str, ...]

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Rows that sort alike stand in order of arrival."""
        return True

    def upsert_keys(self) -> Keys:
        """None."""
        return NO_KEYS

    def window_columns(self) -> WindowColumns | None:
        """None."""
        return None

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """The partition's columns."""
        return tuple(sorted(arriving[0].columns[index] for index in self.partition))

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The partition's columns, then the measures over the pattern."""
        columns = arriving[0].columns
        pattern = f" OF {self._pattern()} {self._defined(columns)} {self._after()} {self.within_ms}"
        order = order_text(columns, self.order)
        keys = tuple(columns[index] for index in self.partition)
        texts = (short(f"{self._text(measure, columns)}{pattern} {order}") for measure in self.measures)
        asked = arriving[0].conditions
        return Lineage((*keys, *texts), united(asked, placed("BELOW MATCH_RECOGNIZE", asked)))

    def predicates(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """The pattern, and what its variables ask of rows."""
        return (f"{self._pattern()} {self._defined(arriving[0].columns)}",)

    def repeatable(self) -> bool:
        """Only by the clock answers differ."""
        return self.row_time

    def same_in_batch(self) -> bool:
        """No row is late, and all are sorted when the input ends."""
        return True

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """Rows of row time leave by watermark; in processing time Flink plans the same."""
        return MiniBatchMode.ROW_TIME

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """As Calcite has it: as many as arrive."""
        return arriving[0]

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """A step a row and variable."""
        return Cost(rows, sum(arriving) * len(self.variables))

    def expressions(self) -> tuple[Expr, ...]:
        """Conditions, arguments of aggregates, measures."""
        paths = (variable.path_condition for variable in self.variables)
        found = [path.expression for path in paths if path is not None]
        return (*self.computed, *found, *(measure.expression for measure in self.measures))

    def asked_in_python(self) -> tuple[str, ...]:
        """Variables whose conditions read earlier rows of the match and are more than the stack machine answers."""
        programs = stack_programs(self.variables).places
        pairs = zip(self.variables, programs, strict=True)
        return tuple(v.name for v, program in pairs if v.path_condition is not None and program is None)

    # Texts

    def _stored(self, names: Sequence[str]) -> list[str]:
        printer = ExpressionPrinter(names)
        return [*names, *(printer.print(expr) for expr in self.computed)]

    def _read(self, read: PatternRead, names: Sequence[str]) -> str:
        variables = [*(variable.name for variable in self.variables), *self.empty]
        match read:
            case PatternColumn(variable, column, first, offset):
                of = "*" if variable is None else variables[variable]
                return f"{'FIRST' if first else 'LAST'}({of}.{names[column]}, {offset})"
            case PatternAggregate(variable, call):
                of = "*" if variable is None else variables[variable]
                return call_text(call, [f"{of}.{text}" for text in self._stored(names)])
            case MatchTime.ROW_TIME:
                return "MATCH_ROWTIME()"

    def _text(self, expr: PatternExpression, names: Sequence[str]) -> str:
        return ExpressionPrinter([self._read(read, names) for read in expr.reads]).print(expr.expression)

    def _defined(self, names: Sequence[str]) -> str:
        stored = self._stored(names)
        parts = []
        for variable in self.variables:
            if variable.path_condition is not None:
                parts.append(f"{variable.name}=>{self._text(variable.path_condition, names)}")
            elif variable.row_condition is not None:
                parts.append(f"{variable.name}=>{stored[variable.row_condition]}")
        return f"{{{', '.join(parts)}}}"

    def _pattern(self) -> str:
        parts = []
        for variable in self.variables:
            low, high = variable.low, variable.high
            times = "" if (low, high) == (1, 1) else f"{{{low},{'' if high is None else high}}}"
            reluctant = "?" if times and low != high and not variable.greedy and (low, high) != (0, 1) else ""
            parts.append(f"{variable.name}{times}{reluctant}")
        return f"({' '.join(parts)})"

    def _after(self) -> str:
        variable = "" if self.skip_variable is None else f" {self.variables[self.skip_variable].name}"
        return f"{self.skip.value}{variable}"

    def attributes(self, infix: bool) -> Attributes:
        """Keys, order, measures, pattern and conditions."""
        names = self.inputs[0].names
        made = self.names[len(self.partition) :]
        measures = (f"{self._text(expr, names)} AS {name}" for expr, name in zip(self.measures, made, strict=True))
        return [
            *([("partitionBy", ", ".join(named(self.inputs[0], self.partition)))] if self.partition else []),
            ("orderBy", order_text(names, self.order)),
            ("measures", ", ".join(measures)),
            ("rowsPerMatch", "ONE ROW PER MATCH"),
            ("after", self._after()),
            ("pattern", self._pattern()),
            *([] if self.within_ms is None else [("within interval", f"{self.within_ms} ms")]),
            ("define", self._defined(names)),
        ]

    def spec(self, job: JobContext) -> OperatorSpec:
        """One operator."""
        return MatchSpec(
            self.partition,
            self.order,
            self.row_time,
            self.variables,
            self.computed,
            self.measures,
            self.skip,
            self.skip_variable,
            self.within_ms,
            self.inputs[0].schema,
            self.schema,
        )
