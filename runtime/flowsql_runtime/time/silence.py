"""Which splits of a source have given no rows for so long that they do not hold watermarks back."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Set


class SplitSilence:
    """Judges splits that are read side by side; a source without splits, or one that reads them one behind another, is
    judged as a whole, as the one split None.

    ``timeout_ms`` 0: silence means nothing. Source: Flink, ``WatermarksWithIdleness``, ``CombinedWatermarkStatus``.
    """

    def __init__(self, timeout_ms: int, now_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._began_ms: int | None = now_ms
        self._since: dict[Hashable, int] = {}
        #: Splits that are idle.
        self.idle: Set[Hashable] = frozenset()

    def heard(self, split: Hashable, now_ms: int) -> None:
        """It gave rows."""
        self._since[split] = now_ms
        self.idle -= {split}

    def judge(self, splits: Collection[Hashable], held_back: Set[Hashable], now_ms: int) -> int | None:
        """Say anew which splits are idle.

        Args:
            splits: all that are not read to their end.
            held_back: those that are not read although they may have rows.

        Returns:
            After how many milliseconds to judge again; None where all are idle.
        """
        # What was there from the beginning is silent from the beginning, other splits from when they are found.
        new_ms = now_ms if self._began_ms is None else self._began_ms
        self._began_ms = None
        since = {split: now_ms if split in held_back else self._since.get(split, new_ms) for split in splits}
        self._since = since
        left = {split: start_ms + self.timeout_ms - now_ms for split, start_ms in since.items()}
        self.idle = frozenset(split for split, rest_ms in left.items() if rest_ms <= 0)
        return min((rest_ms for rest_ms in left.values() if rest_ms > 0), default=None)
