"""Semi and anti joins: left rows that have a partner, or that have none."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import LateColumns
from flowsql_core.graph.specs import JoinKind, JoinSpec
from flowsql_core.row import RowKind
from flowsql_runtime.operators.join.regular import Probe, RegularJoin

Int32s = npt.NDArray[np.int32]


class SemiJoinOperator(RegularJoin):
    """Left semi or anti join.

    Out    left columns. A left row passes with its kind, or not at all. A right row that is the first partner of a left
           row, or was its last, lets it in or out: of a semi join with the kind of the right row, of an anti join as -D
           and +I.

    Source: Flink, ``StreamingSemiAntiJoinOperator``.
    """

    def __init__(self, spec: JoinSpec) -> None:
        super().__init__(spec)
        self._anti = spec.kind is JoinKind.ANTI

    def _meet(self, probe: Probe) -> Int32s:
        # Without a condition nobody looks at what was found.
        stored = self._rows[1 - probe.side].gather(probe.found) if self._condition is not None or probe.side else []
        met = self._fulfilling(probe, stored)
        probes, found = (probe.probes, probe.found) if met is None else (probe.probes[met], probe.found[met])
        if probe.side == 0:
            self._pass(probe, probes)
        else:
            before = self._count(probe, found, probes)
            goes = probe.signs[probes] < 0
            turned = np.flatnonzero(before == goes)
            pairs = turned if met is None else met[turned]
            kinds = self._kinds(probe, probes[turned], goes[turned])
            self._collect(LateColumns.of(stored, pairs), len(turned), kinds, probe.track_at(probes[turned]))
        return probes

    def _pass(self, probe: Probe, probes: Int32s) -> None:
        """Left rows by whether they have partners."""
        partners = probe.partners(probes)
        passing = (np.flatnonzero((partners == 0) if self._anti else (partners > 0)) + probe.first).astype(np.int32)
        batch = probe.batch
        kinds = None if batch.kinds is None else batch.kinds[passing]
        self._collect(LateColumns.of(batch.columns, passing), len(passing), kinds, probe.track_at(passing))

    def _kinds(self, probe: Probe, rows: Int32s, goes: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8] | None:
        if self._anti:
            return np.where(goes, np.uint8(RowKind.INSERT), np.uint8(RowKind.DELETE))
        return None if probe.batch.kinds is None else probe.batch.kinds[rows]
