"""How a query may be run: none of it may change its answer."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from ..cold_state import BACKENDS

BATCH_ROWS: Final = (1, 7, 65_536)
#: Options that no plan depends on.
RUN_OPTIONS: Final = frozenset({"flowsql.source.batch-rows", "flowsql.network.batch-rows", *BACKENDS["rocksdb"]})
BATCH_OPERATORS: Final = (
    "NestedLoopJoin",
    "ShuffleHashJoin",
    "BroadcastHashJoin",
    "SortMergeJoin",
    "HashAgg",
    "SortAgg",
)
_MINI_BATCH: Final = "table.exec.mini-batch"


@dataclass(frozen=True)
class Variation:
    """One way to run a query; the defaults are the plain way.

    Attributes:
        batch_rows: rows of a batch, at sources and behind exchanges.
        parallelism: of the job, or of the job before the cut.
        backend: of state, with nothing in memory between two batches on ``rocksdb``.
        mini_batch: rows of a mini-batch; 0: none.
        phases: ``table.optimizer.agg-phase-strategy``.
        split: split distinct aggregates.
        cut: rows of each source before a snapshot; None: not cut. Negative: another number for each source.
        after: parallelism behind the cut.
        backend_after: backend behind the cut.
        multi_joins: ``table.optimizer.multi-join.enabled``.
        batch: batch mode, in FlowSQL's own runtime.
        disabled: operators that batch mode does not plan, with commas between them.
        room: bytes of rows that an operator of batch mode holds in memory; 0: as its share of the process says.
        blocking: exchanges of batch mode wait for the end of the sender.
    """

    batch_rows: int = 65_536
    parallelism: int = 1
    backend: str = "hashmap"
    mini_batch: int = 0
    phases: str = "AUTO"
    split: bool = False
    cut: int | None = None
    after: int = 1
    backend_after: str = "hashmap"
    multi_joins: bool = False
    batch: bool = False
    disabled: str = ""
    room: int = 0
    blocking: bool = False

    def options(self, behind: bool = False) -> dict[str, str]:
        """Of the job before or behind the cut."""
        rows = str(self.batch_rows)
        made = {"flowsql.source.batch-rows": rows, "flowsql.network.batch-rows": rows}
        if not self.batch:
            made |= BACKENDS[self.backend_after if behind else self.backend]
        if self.mini_batch:
            made |= {
                f"{_MINI_BATCH}.enabled": "true",
                f"{_MINI_BATCH}.allow-latency": "5 s",
                f"{_MINI_BATCH}.size": str(self.mini_batch),
            }
        if self.phases != "AUTO":
            made["table.optimizer.agg-phase-strategy"] = self.phases
        if self.split:
            made["table.optimizer.distinct-agg.split.enabled"] = "true"
            # Asked for, the phases of the split are operators of their own.
            made["table.optimizer.incremental-agg-enabled"] = "true"
        if self.multi_joins:
            made["table.optimizer.multi-join.enabled"] = "true"
        if self.batch and self.disabled:
            made["table.exec.disabled-operators"] = self.disabled
        if self.batch and self.blocking:
            made["execution.batch-shuffle-mode"] = "ALL_EXCHANGES_BLOCKING"
        return made

    def in_batch(self) -> Variation:
        """Batch mode in batches, tasks and phases as here."""
        return Variation(
            batch_rows=self.batch_rows,
            parallelism=self.parallelism,
            phases=self.phases,
            batch=True,
            disabled=self.disabled,
            room=self.room,
            blocking=self.blocking,
        )

    def in_streaming(self) -> Variation:
        """Without what concerns batch mode alone."""
        return replace(self, disabled="", room=0, blocking=False)

    def position(self, operator: str, subtask: int) -> int:
        """Where a source is cut."""
        assert self.cut is not None
        return self.cut if self.cut >= 0 else zlib.crc32(f"{operator}/{subtask}/{self.cut}".encode()) % 40

    @property
    def same_changes(self) -> bool:
        """Whether every change is the same as in the plain way."""
        plain = replace(
            self.in_streaming(), batch_rows=BATCH_ROWS[-1], backend="hashmap", backend_after="hashmap", cut=None
        )
        return plain == Variation()

    def __str__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return " ".join(changed) or "plain"

    @staticmethod
    def read(text: str) -> Variation:
        """What ``str`` wrote."""
        types: dict[str, Any] = {field.name: field.default for field in fields(Variation)}
        given: dict[str, Any] = {}
        for pair in [] if text == "plain" else text.split():
            name, _, value = pair.partition("=")
            match types[name]:
                case bool():
                    given[name] = value == "True"
                case str():
                    given[name] = value
                case _:
                    given[name] = int(value)
        return Variation(**given)

    def simpler(self) -> list[Variation]:
        """The same with one thing as in the plain way."""
        plain = Variation()
        return [
            replace(self, **{field.name: getattr(plain, field.name)})
            for field in fields(self)
            if getattr(self, field.name) != getattr(plain, field.name)
        ]


def draw(random_: random.Random) -> Variation:
    """Any way but the plain one; what costs more comes less often."""
    made = Variation(
        batch_rows=random_.choice([1, 7, 7, 7, 65_536, 65_536]), parallelism=random_.choice([1, 1, 1, 2, 2, 3])
    )
    if random_.random() < 0.35:
        made = replace(
            made,
            mini_batch=random_.choice([1, 5, 20, 1000]),
            phases=random_.choice(["AUTO", "AUTO", "ONE_PHASE", "TWO_PHASE"]),
            split=random_.random() < 0.3,
        )
    if random_.random() < 0.15:
        made = replace(made, multi_joins=True)
    if random_.random() < 0.25:
        made = replace(made, backend="rocksdb")
    if random_.random() < 0.3:
        made = replace(
            made,
            cut=random_.choice([0, 3, 8, 15, 30, 45, -random_.randrange(1, 1000), -random_.randrange(1, 1000)]),
            after=random_.choice([1, 1, 2, 3]),
            backend_after=random_.choice(["hashmap", "hashmap", "rocksdb"]),
        )
    if made == Variation():
        made = replace(made, batch_rows=7)
    return replace(
        made,
        phases=random_.choice(["ONE_PHASE", "TWO_PHASE"]) if random_.random() < 0.15 else made.phases,
        disabled=_some(random_, BATCH_OPERATORS) if random_.random() < 0.3 else "",
        room=random_.choice([1, 200, 2000]) if random_.random() < 0.2 else 0,
        blocking=random_.random() < 0.1,
    )


def _some(random_: random.Random, names: Sequence[str]) -> str:
    return ",".join(sorted(random_.sample(names, random_.choice([1, 1, 2, 3]))))
