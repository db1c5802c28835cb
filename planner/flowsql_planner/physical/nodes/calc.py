"""Row by row: projections, filters, Python functions, copies for grouping sets, collections taken apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from flowsql_core.expr import Call, Expr, InputRef, input_refs, transform
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.python_specs import PythonCalcSpec
from flowsql_core.graph.specs import REPLICATE_ROWS, CalcSpec, CorrelateSpec, ExpandSpec, OperatorSpec
from flowsql_core.python_call import called_function, python_call
from flowsql_core.record import record
from flowsql_core.types.logical import Schema
from flowsql_planner.logical.expression_text import ExpressionPrinter, record_type
from flowsql_planner.optimize.determinism import is_deterministic
from flowsql_planner.physical.nodes.base import Connectors, JobContext, Keyless, PassesThrough, walk
from flowsql_planner.physical.nodes.line import Attributes, selected_text
from flowsql_planner.traits.changes import Modifies, Updates
from flowsql_planner.traits.cost import Cost, selectivity
from flowsql_planner.traits.determinism import NONE, Columns, refuse_changing, refuse_condition
from flowsql_planner.traits.determinism import through_projection as determined_through
from flowsql_planner.traits.interval import Bounds, asserted, filtered, of_projected
from flowsql_planner.traits.keys import Keys, through_projection
from flowsql_planner.traits.lineage import conditions, short, texts, united
from flowsql_planner.traits.monotonicity import Monotonicities, of_projection
from flowsql_planner.traits.window import WindowColumns


def _through_filter(condition: Expr | None, required: Updates) -> Iterable[tuple[Updates, ...]]:
    """A filter may drop the +U whose row replaced one that passed: it needs the -U."""
    return () if condition is not None and required is Updates.AFTER else ((required,),)


@record(kw_only=True)
class Calc(PassesThrough):
    """Filter, then project."""

    projections: tuple[Expr, ...]
    condition: Expr | None = None

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """What is asked of the node, where its filter can do without ``-U``: all rows of a key fulfil it, or none."""
        if self.condition is not None:
            columns = input_refs(self.condition)
            if any(columns <= key for key in self.inputs[0].upsert_keys()):
                return ((required,),)
        return _through_filter(self.condition, required)

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """What stands behind what is asked for."""
        if not self.inputs[0].retracts or not required:
            return (NONE,)
        refuse_condition(self.condition, self.span)
        return (determined_through(required, self.projections, self.names, self.span),)

    def upsert_keys(self) -> Keys:
        """Keys whose columns go on."""
        return through_projection(self.inputs[0].upsert_keys(), self.projections)

    def monotonicity(self) -> Monotonicities:
        """What goes on moves as before."""
        return of_projection(self.inputs[0].monotonicity(), self.projections)

    def bounds(self, column: int) -> Bounds:
        """What the expression and the condition tell."""
        return of_projected(self.projections[column], self.condition, self.inputs[0].bounds)

    def filtered_bounds(self, column: int, condition: int) -> Bounds:
        """The condition of the rows is an expression here, as a rule."""
        expr, bounds = self.projections[column], self.bounds(column)
        if isinstance(expr, InputRef):
            return filtered(expr.index, asserted(self.projections[condition]), bounds)
        return bounds

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """Expressions over the input's columns."""
        source = arriving[0]
        kept = conditions(self.condition, source.columns)
        return Lineage(texts(self.projections, source.columns), united(source.conditions, kept))

    def window_columns(self) -> WindowColumns | None:
        """Those that go on."""
        below = self.inputs[0].window_columns()

        def places(columns: frozenset[int]) -> frozenset[int]:
            return frozenset(
                out for out, expr in enumerate(self.projections) if isinstance(expr, InputRef) and expr.index in columns
            )

        return None if below is None else below.moved(places)

    def repeatable(self) -> bool:
        """Where no expression draws another value at each call."""
        return all(map(is_deterministic, self.expressions()))

    def same_in_batch(self) -> bool:
        """Row by row."""
        return True

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """What the condition keeps."""
        return arriving[0] if self.condition is None else max(arriving[0] * selectivity(self.condition), 1.0)

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """One call a row and function."""
        computed = sum(1 for expr in self.projections if isinstance(expr, Call))
        return Cost(rows, sum(arriving) * computed)

    def expressions(self) -> tuple[Expr, ...]:
        """Projections and condition."""
        return self.projections if self.condition is None else (*self.projections, self.condition)

    def attributes(self, infix: bool) -> Attributes:
        """Projections and condition."""
        printer = ExpressionPrinter(self.inputs[0].names, infix, materialized=True)
        attributes = [("select", selected_text(self.projections, self.names, printer))]
        if self.condition is not None:
            attributes.append(("where", printer.print(self.condition)))
        return attributes

    def spec(self, job: JobContext) -> OperatorSpec:
        """Compiled expressions."""
        return CalcSpec(self.projections, self.condition)


@record(kw_only=True)
class PythonCalc(Calc):
    """Hands columns on, then calls Python functions of one kind over columns, constants, each other; no condition."""

    def spec(self, job: JobContext) -> OperatorSpec:
        """Calls of Python; functions that no text can name go into the job's resources.

        A function that has a path or a text is loaded where it runs: a plan of such functions alone can be stored.
        """

        def by_name(expr: Expr) -> Expr:
            function = called_function(expr)
            if function is None or not isinstance(expr, Call):
                return expr
            if function.path is None and function.source is None:
                job.resources[function.key] = function.function
            return python_call(replace(function, function=None), expr.args, expr.type, expr.span)

        projections = tuple(transform(expr, by_name) for expr in self.projections)
        return PythonCalcSpec(projections, self.inputs[0].schema)


@record(kw_only=True)
class PythonAsyncCalc(PythonCalc):
    """Hands columns on, then calls one asynchronous Python function over columns and constants."""


@record(kw_only=True)
class ExpandNode(Keyless):
    """Each row once per projection list."""

    projections: tuple[tuple[Expr, ...], ...]

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """What stands behind what is asked for, in any copy."""
        if not self.inputs[0].retracts or not required:
            return (NONE,)
        copies = (determined_through(required, row, self.names, self.span) for row in self.projections)
        return (frozenset().union(*copies),)

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """What each copy has in a place, in the order of the copies."""
        copies = [texts(row, arriving[0].columns) for row in self.projections]
        columns = (dict.fromkeys(column) for column in zip(*copies, strict=True))
        return Lineage(tuple(short(" | ".join(column)) for column in columns), arriving[0].conditions)

    def window_columns(self) -> WindowColumns | None:
        """Those that every copy has in the same place."""
        below = self.inputs[0].window_columns()

        def kept(columns: frozenset[int]) -> frozenset[int]:
            return frozenset(
                out
                for out in range(len(self.schema))
                if all(_reads_one_of(row[out], columns) for row in self.projections)
            )

        return None if below is None else below.moved(kept)

    def same_in_batch(self) -> bool:
        """Row by row."""
        return True

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """A copy a list."""
        return arriving[0] * len(self.projections)

    def expressions(self) -> tuple[Expr, ...]:
        """Those of all lists."""
        return tuple(expr for row in self.projections for expr in row)

    def attributes(self, infix: bool) -> Attributes:
        """The lists."""
        printer = ExpressionPrinter(self.inputs[0].names, infix)
        rows = []
        for row in self.projections:
            cells = []
            for expr, name in zip(row, self.names, strict=True):
                printed = printer.print(expr)
                text = "null" if printed.startswith("null:") else printed.removesuffix(":BIGINT")
                cells.append(text if text == name else f"{text} AS {name}")
            rows.append("{" + ", ".join(cells) + "}")
        return [("projects", ", ".join(rows))]

    def spec(self, job: JobContext) -> OperatorSpec:
        """Copies."""
        return ExpandSpec(self.projections)


def _reads_one_of(expr: Expr, columns: frozenset[int]) -> bool:
    return isinstance(expr, InputRef) and expr.index in columns


@record(kw_only=True)
class CorrelateNode(Keyless):
    """Each row beside every element of ``collection``; the fields are those of the logical ``Correlate``."""

    collection: Expr
    added: Schema
    ordinality: bool = False
    outer: bool = False
    condition: Expr | None = None

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """What is asked of the node, where its filter can do without ``-U``."""
        return _through_filter(self.condition, required)

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """What is asked for of the row, and what the collection is made of where its elements are."""
        if not self.inputs[0].retracts or not required:
            return (NONE,)
        refuse_condition(self.condition, self.span)
        width = len(self.inputs[0].schema)
        added = [index for index in sorted(required) if index >= width]
        kept = required - set(added)
        if added:
            refuse_changing([self.collection], self.names[added[0]], self.span)
            kept |= input_refs(self.collection)
        return (kept,)

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The input's columns, and those of the collection's elements."""
        source = arriving[0]
        (collection,) = texts((self.collection,), source.columns)
        added = tuple(f"{collection}.{index}" for index in range(len(self.schema) - len(source.columns)))
        kept = conditions(self.condition, added)
        kind = (f"{'LEFT' if self.outer else 'INNER'} UNNEST {collection}",)
        return Lineage((*source.columns, *added), united(source.conditions, kept, kind))

    def window_columns(self) -> WindowColumns | None:
        """Those of the input, whose columns come first."""
        return self.inputs[0].window_columns()

    def same_in_batch(self) -> bool:
        """Row by row."""
        return True

    def expressions(self) -> tuple[Expr, ...]:
        """The collection and the condition."""
        return (self.collection,) if self.condition is None else (self.collection, self.condition)

    def attributes(self, infix: bool) -> Attributes:
        """The collection as Flink's internal table function."""
        source = self.inputs[0]
        number = sum(isinstance(below, CorrelateNode) for below in walk(source))
        row = ExpressionPrinter([f"$cor{number}.{name}" for name in source.names])
        function = "$UNNEST_ROWS_WITH_ORDINALITY$1" if self.ordinality else "$UNNEST_ROWS$1"
        call = invocation = f"{function}({row.print(self.collection)})"
        if isinstance(self.collection, Call) and self.collection.function == REPLICATE_ROWS:
            arguments = [arg.index for arg in self.collection.args if isinstance(arg, InputRef)]
            invocation = f"{REPLICATE_ROWS}$1({', '.join(f'${index}' for index in arguments)})"
            call = f"{REPLICATE_ROWS}$1({','.join(source.names[index] for index in arguments)})"
        attributes = [
            ("invocation", invocation),
            ("correlate", f"table({call})"),
            ("select", ",".join(self.names)),
            ("rowType", record_type(self.schema, expanded=bool(source.schema))),
            ("joinType", "LEFT" if self.outer else "INNER"),
        ]
        if self.condition is not None:
            attributes.append(("condition", ExpressionPrinter(None).print(self.condition)))
        return attributes

    def spec(self, job: JobContext) -> OperatorSpec:
        """Rows multiplied by the elements."""
        return CorrelateSpec(self.collection, self.added, self.ordinality, self.outer, self.condition)
