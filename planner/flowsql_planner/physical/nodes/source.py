"""Where rows come from: scans of tables, and rows that the query writes."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Sequence

from flowsql_core.expr import Expr, Literal
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import OperatorSpec, ScanSpec, TableSpec, ValuesSpec
from flowsql_core.record import record
from flowsql_planner.logical.expression_text import ExpressionPrinter, literal_text, record_type
from flowsql_planner.physical.nodes.base import Connectors, JobContext, Physical
from flowsql_planner.physical.nodes.line import Attributes
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.traits.changes import ALL, INSERTS, Modifies, Updates, modifies_of
from flowsql_planner.traits.cost import UNKNOWN_ROWS, Cost, row_bytes
from flowsql_planner.traits.determinism import Columns, refuse_metadata
from flowsql_planner.traits.interval import Bounds, of_projected, spanning
from flowsql_planner.traits.keys import NO_KEYS, Keys
from flowsql_planner.traits.lineage import short, table_text, texts, united
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class Leaf(Physical, ABC):
    """A node without inputs."""

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Nothing arrives."""
        return ALL

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """Nobody."""
        return ((),)

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """There is no input."""
        return observed

    def window_columns(self) -> WindowColumns | None:
        """No window stands on a source."""
        return None

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """Rows come as they are."""
        return ()

    def same_in_batch(self) -> bool:
        """Rows are the same."""
        return True

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """There is nothing below."""
        return above


@record(kw_only=True)
class TableSourceScan(Leaf):
    """Read a table: physical columns at ``projection``, then ``metadata``.

    ``filters`` are shown and handed to the source; whatever it does not fully handle stays in a Calc above.
    """

    table: TableSpec
    projection: tuple[int, ...]
    metadata: tuple[str, ...] = ()
    filters: tuple[Expr, ...] = ()
    limit: int | None = None

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """What the connector emits."""
        return modifies_of(connectors.source_mode(self.table, self.span))

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """Columns are what they are; metadata may be others with each change."""
        metadata = [self.names[index] for index in sorted(required) if index >= len(self.projection)]
        if metadata and self.retracts:
            refuse_metadata(metadata, self.span)
        return ()

    def upsert_keys(self) -> Keys:
        """The declared key, while its columns are read."""
        if not self.table.primary_key:
            return NO_KEYS
        position = {self.table.columns[index].name: out for out, index in enumerate(self.projection)}
        if any(name not in position for name in self.table.primary_key):
            return NO_KEYS
        return frozenset({frozenset(position[name] for name in self.table.primary_key)})

    def own_lineage(self) -> frozenset[str]:
        """The table."""
        return frozenset({self.table.name})

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """Columns of the table; what was pushed into the scan says which rows arrive."""
        table = table_text(self.table.name)
        whole = tuple(f"{table}.{column.name}" for column in self.table.columns)
        read = (*(whole[index] for index in self.projection), *(f"{table}.{key} (metadata)" for key in self.metadata))
        limit = () if self.limit is None else (f"{table} LIMIT {self.limit}",)
        return Lineage(read, united(texts(self.filters, whole), limit))

    def repeatable(self) -> bool:
        """A table is read once for all who read the same of it."""
        return True

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """Nobody knows how large a table is."""
        return UNKNOWN_ROWS if self.limit is None else min(UNKNOWN_ROWS, float(self.limit))

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """The bytes that are read."""
        return Cost(rows, rows, rows * row_bytes(self.schema))

    def expressions(self) -> tuple[Expr, ...]:
        """What was pushed into it."""
        return self.filters

    def attributes(self, infix: bool) -> Attributes:
        """The table with what was pushed into its scan."""
        parts = [", ".join(self.table.shown_path)]
        names = [column.name for column in self.table.columns]
        if self.filters:
            printer = ExpressionPrinter(names)
            shown = [printer.print(part) for part in self.filters]
            text = shown[0]
            for other in shown[1:]:
                text = f"and({text}, {other})"
            parts.append(f"filter=[{text}]")
        whole = tuple(range(len(names)))
        if self.projection != whole or self.metadata:
            parts.append(f"project=[{', '.join(names[index] for index in self.projection)}]")
            parts.append(f"metadata=[{', '.join(self.metadata)}]")
        if self.limit is not None:
            parts.append(f"limit=[{self.limit}]")
        return [("table", f"[{', '.join(parts)}]"), ("fields", ", ".join(self.names))]

    def spec(self, job: JobContext) -> OperatorSpec:
        """A source."""
        return ScanSpec(self.table, self.projection, self.schema, self.metadata, self.filters, self.limit, self.mode)


@record(kw_only=True)
class ValuesNode(Leaf):
    """Rows written in the query."""

    rows: tuple[tuple[Literal, ...], ...]

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """Rows that never change."""
        return INSERTS

    def upsert_keys(self) -> Keys:
        """None is looked for."""
        return NO_KEYS

    def own_lineage(self) -> frozenset[str]:
        """No table."""
        return frozenset()

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """Columns by place; rows that are written otherwise are other rows."""
        rows = dict(self.attributes(infix=True))["tuples"]
        return Lineage(tuple(f"VALUES.{index}" for index in range(len(self.schema))), (short(f"VALUES {rows}"),))

    def bounds(self, column: int) -> Bounds:
        """From the least number that is written to the greatest."""
        return spanning(of_projected(row[column], None, self.bounds) for row in self.rows)

    def repeatable(self) -> bool:
        """Equal VALUES are written twice and stay two, as in Flink."""
        return False

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """The rows that are written."""
        return float(len(self.rows))

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """One look at each row."""
        return Cost(rows, rows)

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """The rows."""
        type_ = [] if infix else [("type", record_type(self.schema))]
        shown = []
        for row in self.rows:
            cells = ["null" if cell.value is None else literal_text(cell.value, cell.type) for cell in row]
            shown.append("{ " + ", ".join(cells) + " }")
        return [*type_, ("tuples", "[" + ", ".join(shown) + "]")]

    def spec(self, job: JobContext) -> OperatorSpec:
        """A source of constants."""
        return ValuesSpec(self.rows, self.schema)
