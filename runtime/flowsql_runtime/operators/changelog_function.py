"""TO_CHANGELOG and FROM_CHANGELOG: kinds of change to a column of codes, and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import Watermark
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.specs import FromChangelogSpec, ToChangelogSpec
from flowsql_core.row import INSERT
from flowsql_runtime.operators.base import Operator


class ToChangelogOperator(Operator[ToChangelogSpec]):
    """Each change as a row.

    In     any changelog.
    Out    append-only: the code of the change's kind, the columns, the time of ``on_time``. Changes of kinds without a
           code are left out.
    State  none.
    """

    def __init__(self, spec: ToChangelogSpec) -> None:
        super().__init__(spec)
        codes: list[str | None] = [None] * 4
        for kind, code in spec.codes:
            codes[kind] = code
        self._codes = pa.array(codes, pa.string())
        self._told = np.array([code is not None for code in codes])

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Codes by kind."""
        track = self.advance_track(input_index, batch.track)
        batch = batch.with_track(track)
        kinds = np.full(batch.num_rows, INSERT, np.uint8) if batch.kinds is None else batch.kinds
        told = self._told[kinds]
        if not told.all():
            batch, kinds = batch.filter(told), kinds[told]
        if batch.num_rows:
            time = self.spec.time_index
            times = () if time is None else (batch.columns[time],)
            columns = (self._codes.take(pa.array(kinds)), *batch.columns, *times)
            self.output.collect(batch.with_columns(columns).with_kinds(None))
        elif track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))


class FromChangelogOperator(Operator[FromChangelogSpec]):
    """Each row as the change that its code tells.

    In     append-only, with a column of codes.
    Out    the other columns as changes of the kinds that the codes stand for. Another code, or NULL, is an error.
    State  none.
    """

    def __init__(self, spec: FromChangelogSpec) -> None:
        super().__init__(spec)
        self._kinds = {code: int(kind) for code, kind in spec.codes}

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Kinds by code."""
        track = self.advance_track(input_index, batch.track)
        batch = batch.with_track(track)
        op = self.spec.op_index
        kinds = self._kinds_of(batch.columns[op])
        columns = [batch.columns[index] for index in range(len(batch.columns)) if index != op]
        if columns:
            self.output.collect(batch.with_columns(columns).with_kinds(kinds))
        else:
            self.output.collect(ChangelogBatch((), batch.num_rows, kinds, None, track))

    def _kinds_of(self, codes: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        if codes.null_count:
            raise ExecutionError(
                "bad-op-code", "Received NULL op code. Every changelog row must carry an operation code."
            )
        encoded = codes.dictionary_encode()
        # Python over the distinct codes only.
        words = encoded.dictionary.to_pylist()
        unknown = next((word for word in words if word not in self._kinds), None)
        if unknown is not None:
            raise ExecutionError(
                "bad-op-code",
                f"Received invalid op code '{unknown}'. Defined op codes are: [{', '.join(self._kinds)}].",
                hint="name it in op_mapping",
            )
        places, _ = values_and_validity(encoded.indices)
        return np.array([self._kinds[word] for word in words], np.uint8)[places]
