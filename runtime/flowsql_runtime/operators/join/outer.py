"""Outer joins: rows without a partner stand beside NULLs until one comes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import LateColumns
from flowsql_core.graph.specs import JoinSpec
from flowsql_runtime.kernels import outer_join as kernels
from flowsql_runtime.operators.join.regular import Probe, RegularJoin

Int32s = npt.NDArray[np.int32]


class OuterJoinOperator(RegularJoin):
    """Left, right or full outer join.

    Out    left columns, then right; NULLs for the side without a partner. Rows come as +I and go as -D, but a result
           that goes because of a row of the side that is not kept has the kind of that row.

    Source: Flink, ``StreamingJoinOperator``.
    """

    def __init__(self, spec: JoinSpec) -> None:
        super().__init__(spec)
        self._outer = self._counted

    def _meet(self, probe: Probe) -> Int32s:
        own_outer, other_outer = self._outer[probe.side], self._outer[1 - probe.side]
        stored = self._rows[1 - probe.side].gather(probe.found)
        met = self._fulfilling(probe, stored)
        probes, found = (probe.probes, probe.found) if met is None else (probe.probes[met], probe.found[met])
        before = self._count(probe, found, probes) if other_outer else np.zeros(0, np.int32)
        batch = probe.batch
        kinds = np.zeros(batch.num_rows, np.uint8) if batch.kinds is None else np.ascontiguousarray(batch.kinds)
        room = (probe.last - probe.first) + (1 + other_outer) * len(probes)
        causes, own, partner = (np.empty(room, np.int32) for _ in range(3))
        made = np.empty(room, np.uint8)
        count = kernels.changes(
            kinds, probe.first, probe.last, np.ascontiguousarray(probes), before, own_outer, other_outer,
            causes, own, partner, made,
        )  # fmt: skip
        causes, own, partner, made = causes[:count], own[:count], partner[:count], made[:count]
        if met is not None:
            partner = np.where(partner < 0, partner, met[partner]) if len(met) else partner
        mine = (LateColumns.padded if other_outer else LateColumns.of)(batch.columns, own)
        theirs = (LateColumns.padded if own_outer else LateColumns.of)(stored, partner)
        columns = self._joined(probe, mine, theirs)
        self._collect(columns, count, made if made.any() else None, probe.track_at(causes))
        return probes
