"""Places in PostgreSQL's log, and which transactions a snapshot shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from flowsql_connectors.cdc.log import Bools
from flowsql_core.record import record

_EPOCH: Final = 1 << 32


def lsn_text(lsn: int) -> str:
    """An LSN as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


@record
class Visible:
    """What a snapshot shows: transactions below ``end`` but those that were ``running``.

    Numbers are those of ``txid_current_snapshot()``, of 64 bits; those of sub-transactions are not among them, and not
    in the log either.
    """

    end: int
    running: frozenset[int]

    @staticmethod
    def of(text: str) -> Visible:
        """``xmin:xmax:xip,...``."""
        _, end, running = text.split(":")
        return Visible(int(end), frozenset(map(int, running.split(","))) if running else frozenset())

    def shows(self, xids: Sequence[int]) -> Bools:
        """Of each transaction whether the snapshot shows it, bool (n,).

        Args:
            xids: as the log has them, of 32 bits; each is within 2^31 of the snapshot.
        """
        short = np.asarray(xids, np.int64)
        # Numbers of 32 bits begin anew; the nearest one of 64 bits is meant.
        ahead = (short - self.end + _EPOCH // 2) % _EPOCH - _EPOCH // 2
        whole = self.end + ahead
        shown = whole < self.end
        if self.running:
            shown &= ~np.isin(whole, np.fromiter(self.running, np.int64, len(self.running)))
        return np.asarray(shown, np.bool_)
