"""Batch mode of operators over Python objects: inputs that are sorted by key, one key after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.stream_specs import KEY, VALUE, InputOrder, SortedInputsSpec
from flowsql_core.stream.keys import key_tokens
from flowsql_runtime.operators.base import Int64s, OperatorContext, OperatorSnapshot
from flowsql_runtime.operators.bounded.base import BoundedOperator
from flowsql_runtime.operators.registry import make_operator
from flowsql_runtime.state.scratch import scratch_backend
from flowsql_runtime.stream.base import KeyedObjectOperator, ObjectOperator
from flowsql_runtime.stream.bounded.sorted_elements import Element, SortedElements, in_turn
from flowsql_runtime.stream.emitter import times_of

#: Elements of one key that are handed over at once.
_PIECE = 1024


class SortedInputsOperator(BoundedOperator[SortedInputsSpec]):
    """Gives the elements of each key together, in order of time, to the operator inside; then the key's timers fire.

    In     as the operator inside. Inputs that are not sorted come first; the others wait for the end of all inputs.
    Out    what the operator inside emits, then the last watermark.
    State  that of one key at a time, in memory. Elements that memory cannot hold wait in files.

    Source: Flink, ``SortingDataInput``, ``MultiInputSortingDataInput``, ``BatchExecutionInternalTimeService``.
    """

    def __init__(self, spec: SortedInputsSpec) -> None:
        super().__init__(spec)
        self.number_of_inputs = len(spec.inputs)
        self._inner: ObjectOperator[Any] | None = None

    def open(self, ctx: OperatorContext) -> None:
        """Open the operator inside, with state of its own."""
        key_bytes = ctx.resources[self.spec.key_bytes] if self.spec.key_bytes is not None else None
        held = [order for order in self.spec.inputs if order is not InputOrder.FIRST]
        share_bytes = max(1, self.share_bytes // max(1, len(held)))
        self._elements = [
            None
            if order is InputOrder.FIRST
            else SortedElements(
                ctx.memory, share_bytes, lambda: self.space, key_bytes if order is InputOrder.SORTED else None
            )
            for order in self.spec.inputs
        ]
        made = cast(ObjectOperator[Any], make_operator(self.spec.operator, ctx.resources))
        own = replace(ctx, state=scratch_backend(ctx.max_parallelism))
        made.setup(own, self.output)
        self._inner = made
        made.open(own)

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Batch mode restores nothing."""
        self._operator.initialize_state(None)

    @property
    def _operator(self) -> ObjectOperator[Any]:
        assert self._inner is not None
        return self._inner

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep elements; those of an input that comes first, or that nothing has to wait for, go on."""
        elements = self._elements[input_index]
        if elements is None:
            self._operator.process_batch(input_index, batch.with_track(None))
            return
        if not batch.num_rows:
            return
        values = batch.columns[VALUE].values.tolist()
        keys = batch.columns[KEY].values.tolist() if self.spec.inputs[input_index] is InputOrder.SORTED else ()
        elements.add(values, keys, times_of(batch))

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """Timers of the clock fire at the end of their key."""

    def answer(self) -> None:
        """All inputs ended: key after key."""
        operator = self._operator
        operator.begin_bounded()
        current: bytes | None = None
        piece: list[Element] = []
        piece_of = 0
        keyed = isinstance(operator, KeyedObjectOperator)
        for number, element in in_turn(self._elements):
            new_key = keyed and element[0] != current
            if piece and (new_key or number != piece_of or len(piece) >= _PIECE):
                self._hand_over(piece_of, piece)
                piece = []
            if new_key:
                if current is not None:
                    cast(KeyedObjectOperator[Any], operator).end_of_key()
                current = element[0]
            piece_of = number
            piece.append(element)
        if piece:
            self._hand_over(piece_of, piece)
        if current is not None:
            cast(KeyedObjectOperator[Any], operator).end_of_key()
        operator.end_bounded()

    def _hand_over(self, number: int, piece: list[Element]) -> None:
        _, times, keys, values = (list(column) for column in zip(*piece, strict=True))
        if self.spec.inputs[number] is InputOrder.SORTED:
            self._operator.process_bounded(number, (values, keys, key_tokens(keys), times))
        else:
            self._operator.process_bounded(number, (values, (), (), times))

    def close(self) -> None:
        """Close the operator inside; give back memory and files."""
        try:
            if self._inner is not None:
                self._inner.close()
        finally:
            super().close()
