"""Operators of one task, joined by direct calls: the outputs between them and the life of the whole chain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from flowsql_core.batch import ChangelogBatch, PyObjectColumn
from flowsql_core.element import MAX_WATERMARK, LatencyMarker, Watermark, WatermarkStatus
from flowsql_core.errors import FlowSqlError, InternalError
from flowsql_runtime.metrics.registry import OperatorMetrics
from flowsql_runtime.operators.base import Operator
from flowsql_runtime.sampling.tap import JobTaps


def named_failure(error: Exception, operator: str) -> FlowSqlError:
    """The error as the job reports it: a FlowSqlError keeps its kind, anything else is ours, with the cause kept."""
    if isinstance(error, FlowSqlError):
        return error.in_operator(operator)
    wrapped = InternalError(f"{type(error).__name__}: {error}").in_operator(operator)
    wrapped.__cause__ = error
    return wrapped


class Target(Protocol):
    """One receiver of an operator's output: a chained operator or a record writer."""

    def collect(self, batch: ChangelogBatch) -> None:
        """Rows."""
        ...

    def emit_watermark(self, watermark: Watermark) -> None:
        """Time between batches."""
        ...

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Idle or active."""
        ...

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        """A marker."""
        ...

    def end(self) -> None:
        """Nothing follows."""
        ...

    def wants_more(self) -> bool:
        """Whether rows still change anything there."""
        ...


class ChainingOutput:
    """A plain call of the next operator; Arrow data and objects go by reference."""

    __slots__ = ("_input_index", "_metrics", "_node")

    def __init__(self, node: ChainedOperator, input_index: int) -> None:
        self._node = node
        self._metrics = node.metrics
        self._input_index = input_index

    def collect(self, batch: ChangelogBatch) -> None:
        """Rows for the next operator."""
        self._metrics.records_in += batch.num_rows
        if batch.track is not None:
            self._metrics.input_watermark_ms = batch.track.last_ms
        try:
            self._node.operator.process_batch(self._input_index, batch)
        except Exception as error:
            raise named_failure(error, self._node.name)  # noqa: B904 - the cause is set where there is one

    def emit_watermark(self, watermark: Watermark) -> None:
        """Time for the next operator."""
        self._metrics.input_watermark_ms = watermark.timestamp_ms
        try:
            self._node.operator.process_watermark(self._input_index, watermark)
        except Exception as error:
            raise named_failure(error, self._node.name)  # noqa: B904

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Idleness for the next operator."""
        try:
            self._node.operator.process_watermark_status(self._input_index, status)
        except Exception as error:
            raise named_failure(error, self._node.name)  # noqa: B904

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        """A marker for the next operator."""
        if self._node.report_latency is not None:
            self._node.report_latency(marker)
        self._node.operator.process_latency_marker(self._input_index, marker)

    def end(self) -> None:
        """The next operator's input ended."""
        self._node.end_input(self._input_index)

    def wants_more(self) -> bool:
        """Whether the next operator, or anything behind it, still takes rows."""
        return self._node.wants_more()


class CopyingChainingOutput(ChainingOutput):
    """``pipeline.object-reuse=false``: where a batch has several consumers, each gets Python objects of its own.

    A lone consumer needs no copy: operators hand over what nobody else holds (``stream/copies.py``). Arrow data is
    never copied.
    """

    __slots__ = ()


class OperatorOutput:
    """What an operator holds as ``output``: counts, then hands on to the targets of the main output or of a tag.

    Time and markers go to every target, side outputs included, as in Flink. Whoever looks at the rows (``taps``) sees
    them before the targets do.
    """

    __slots__ = ("_all", "_main", "_marked", "_metrics", "_point", "_side", "_side_points")

    def __init__(
        self,
        metrics: OperatorMetrics,
        main: Sequence[Target],
        side: Mapping[str, Sequence[Target]],
        taps: JobTaps,
    ) -> None:
        self._metrics = metrics
        self._point = taps.point(metrics.node_id)
        self._side_points = {tag: taps.point(metrics.node_id, tag) for tag in side}
        self._main: Target | None = _joined(main)
        self._side = {tag: _joined(targets) for tag, targets in side.items()}
        self._all = (*main, *(target for targets in side.values() for target in targets))
        self._marked = -1

    def collect(self, batch: ChangelogBatch) -> None:
        """Rows of the main output."""
        metrics = self._metrics
        metrics.records_out += batch.num_rows
        taps = self._point.taps
        if taps is not None:
            for tap in taps:
                tap.offer(batch)
        if batch.track is not None:
            metrics.output_watermark_ms = batch.track.last_ms
            for target in self._side.values():
                if target is not None:
                    target.emit_watermark(Watermark(batch.track.last_ms))
        if self._main is not None:
            self._main.collect(batch)

    def collect_side(self, tag: str, batch: ChangelogBatch) -> None:
        """Rows of a side output; without a listener they are dropped."""
        target = self._side.get(tag)
        if target is not None:
            self._metrics.records_out += batch.num_rows
            taps = self._side_points[tag].taps
            if taps is not None:
                for tap in taps:
                    tap.offer(batch)
            target.collect(batch)

    def emit_watermark(self, watermark: Watermark) -> None:
        """To every target."""
        self._metrics.output_watermark_ms = watermark.timestamp_ms
        for target in self._all:
            target.emit_watermark(watermark)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """To every target."""
        for target in self._all:
            target.emit_watermark_status(status)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        """To one target, each in turn: markers measure ways, they do not multiply (Flink draws one)."""
        if self._all:
            self._marked = (self._marked + 1) % len(self._all)
            self._all[self._marked].emit_latency_marker(marker)

    def end(self) -> None:
        """To every target."""
        for target in self._all:
            target.end()

    def wants_more(self) -> bool:
        """Whether any target still takes rows; without targets the operator is its own purpose."""
        return not self._all or any(target.wants_more() for target in self._all)


class BroadcastingOutputCollector:
    """One output with several consumers, each chained or written; batches are shared, not copied."""

    __slots__ = ("_marked", "_targets")

    def __init__(self, targets: Sequence[Target]) -> None:
        self._targets = tuple(targets)
        self._marked = -1

    def collect(self, batch: ChangelogBatch) -> None:
        """To each."""
        for target in self._targets:
            target.collect(batch)

    def emit_watermark(self, watermark: Watermark) -> None:
        """To each."""
        for target in self._targets:
            target.emit_watermark(watermark)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """To each."""
        for target in self._targets:
            target.emit_watermark_status(status)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        """To one, each in turn."""
        self._marked = (self._marked + 1) % len(self._targets)
        self._targets[self._marked].emit_latency_marker(marker)

    def end(self) -> None:
        """To each."""
        for target in self._targets:
            target.end()

    def wants_more(self) -> bool:
        """Whether any still takes rows."""
        return any(target.wants_more() for target in self._targets)


class CopyingOutputCollector(BroadcastingOutputCollector):
    """The same without object reuse: each consumer gets Python objects of its own, the last one the originals."""

    __slots__ = ()

    def collect(self, batch: ChangelogBatch) -> None:
        """To each."""
        # Loaded by jobs of DataStreams only.
        from flowsql_runtime.stream.copies import copied_batch

        if not batch.holds_objects:
            super().collect(batch)
            return
        for target in self._targets[:-1]:
            target.collect(copied_batch(batch))
        self._targets[-1].collect(batch)


class FreezingOutput(OperatorOutput):
    """Debug mode (``flowsql.debug``): what leaves an operator is marked read-only, so that a later write raises."""

    __slots__ = ()

    def collect(self, batch: ChangelogBatch) -> None:
        """Freeze, then as usual."""
        freeze(batch)
        super().collect(batch)

    def collect_side(self, tag: str, batch: ChangelogBatch) -> None:
        """Freeze, then as usual."""
        freeze(batch)
        super().collect_side(tag, batch)


def freeze(batch: ChangelogBatch) -> None:
    """Mark every NumPy buffer of a batch read-only (Arrow's are anyway)."""
    arrays: list[Any] = [column.values for column in batch.columns if isinstance(column, PyObjectColumn)]
    arrays.append(batch.kinds)
    if batch.row_times is not None:
        arrays += [batch.row_times.values_ms, batch.row_times.valid]
    if batch.track is not None:
        arrays += [batch.track.offsets, batch.track.wm_ms]
    for array in arrays:
        if array is not None:
            array.flags.writeable = False


class ChainedOperator:
    """An operator with its place in the chain: output, metrics, and how many of its inputs are still open."""

    __slots__ = (
        "_open_inputs",
        "metrics",
        "name",
        "node_id",
        "operator",
        "output",
        "report_latency",
        "stopped",
        "uid",
    )

    def __init__(self, node_id: int, uid: str, name: str, operator: Operator[Any], metrics: OperatorMetrics) -> None:
        self.node_id = node_id
        self.uid = uid
        self.name = name
        self.operator = operator
        self.metrics = metrics
        self.output: OperatorOutput
        self._open_inputs = max(1, operator.number_of_inputs)
        #: Notes the age of a latency marker; None where the job measures none.
        self.report_latency: Callable[[LatencyMarker], None] | None = None
        #: The operator said that it needs no more input.
        self.stopped = False

    def wants_more(self) -> bool:
        """Whether further input changes anything, here or behind."""
        return not self.stopped and self.output.wants_more()

    def end_early(self) -> None:
        """All inputs of an operator that needs no more end now, as if the last watermark had arrived."""
        for input_index in range(self._open_inputs):
            try:
                self.operator.process_watermark(input_index, Watermark(MAX_WATERMARK))
            except Exception as error:
                raise named_failure(error, self.name)  # noqa: B904
            self.end_input(input_index)

    @property
    def ended(self) -> bool:
        """Whether all inputs ended."""
        return self._open_inputs == 0

    def end_input(self, input_index: int) -> None:
        """One input ended; after the last one the operator finishes and its targets' inputs end."""
        try:
            if self.operator.number_of_inputs:
                self.operator.end_input(input_index)
            self._open_inputs -= 1
            if self._open_inputs:
                return
            self.operator.finish()
        except Exception as error:
            raise named_failure(error, self.name)  # noqa: B904
        self.output.end()


class OperatorChain:
    """All operators of a task in topological order, the head first."""

    def __init__(self, operators: Sequence[ChainedOperator]) -> None:
        self.operators = tuple(operators)
        self.head = self.operators[0]
        self._opened = 0

    def open(self) -> None:
        """Open from the last operator to the head, so that an operator may emit in ``open``."""
        for node in reversed(self.operators):
            self._opened += 1
            try:
                node.operator.open(node.operator.ctx)
                node.operator.ctx.state.opened()
            except Exception as error:
                raise named_failure(error, node.name)  # noqa: B904

    def close(self) -> Exception | None:
        """Close all that were opened, whatever happened; answers the first failure."""
        first: Exception | None = None
        for node in self.operators[len(self.operators) - self._opened :]:
            try:
                node.operator.close()
            except Exception as error:
                first = first or named_failure(error, node.name)
        for node in self.operators:
            node.operator.ctx.memory.close()
        self._opened = 0
        return first


def _joined(targets: Iterable[Target]) -> Target | None:
    found = tuple(targets)
    if len(found) > 1:
        # Writers say nothing about reuse; a plain chaining output says that the program promised not to change objects.
        reuse = any(type(target) is ChainingOutput for target in found)
        return BroadcastingOutputCollector(found) if reuse else CopyingOutputCollector(found)
    return found[0] if found else None
