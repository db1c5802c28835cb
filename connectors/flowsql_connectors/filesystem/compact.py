"""Merging the small files of a checkpoint before they become visible: Flink's CompactCoordinator and CompactOperator.

The files of each partition are packed into bins. A bin's rows become visible by one rename of the merged file; its
inputs are hidden all the time and removed then. Which files go together is written down, durably, before the first
rename: a commit that is repeated after a crash, maybe with the files of a later checkpoint beside them, first ends what
was begun, so that no file is merged twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence, Set
from typing import Final

import orjson

from flowsql_connectors.filesystem.durable import beside, cannot_write, remove, sync_paths, write_atomically
from flowsql_connectors.filesystem.files import escape_path_name
from flowsql_connectors.filesystem.part import Part, hidden_name
from flowsql_connectors.formats.format import FileEncoder
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record

#: Bins that further files may still go into, as in Flink's BinPacking.
_OPEN_BINS: Final = 10


@record
class Bin:
    """Hidden files of one directory that become one visible file."""

    directory: str
    target: str
    inputs: tuple[str, ...]
    lineage: str

    @property
    def target_path(self) -> str:
        """The visible file."""
        return os.path.join(self.directory, self.target)

    @property
    def input_paths(self) -> list[str]:
        """The hidden files."""
        return [os.path.join(self.directory, name) for name in self.inputs]


class Compactor:
    """Shows the parts of checkpoints as few files of about ``target_bytes``."""

    def __init__(self, encoder: FileEncoder, target_bytes: int) -> None:
        self._encoder = encoder
        self._target_bytes = target_bytes

    def show(self, parts: Sequence[tuple[str, Part]], root: str, lineages: Set[str], repeats: bool) -> None:
        """Make parts visible.

        Args:
            parts: lineage and part, in the order in which they are merged.
            root: the table's folder.
            lineages: of all committables of this commit.
            repeats: an earlier commit may have merged some of them.

        Raises:
            ConnectorError: the disk refused.
        """
        for lineage in sorted(lineages):
            self._end_begun(_plan_path(root, lineage))
        left = []
        for lineage, part in parts:
            if os.path.exists(part.hidden_path):
                left.append((lineage, part))
            elif not repeats:
                raise ConnectorError("lost-part", f"Part file {part.hidden_path} is gone before it was committed.")
        bins = list(self._pack(left))
        if not bins:
            return
        plan = None
        if any(len(bin_.inputs) > 1 for bin_ in bins):
            plan = _plan_path(root, min(lineages))
            write_atomically(
                plan, orjson.dumps([[bin_.directory, bin_.target, bin_.inputs, bin_.lineage] for bin_ in bins])
            )
        for bin_ in bins:
            self._merge(bin_)
        if plan is not None:
            remove(plan)

    def _pack(self, parts: Sequence[tuple[str, Part]]) -> Iterable[Bin]:
        """First fit among the last ten bins of a directory."""
        by_directory: dict[str, list[tuple[str, Part]]] = {}
        for lineage, part in parts:
            by_directory.setdefault(part.directory, []).append((lineage, part))
        for directory, found in by_directory.items():
            bins: list[list[tuple[str, Part]]] = []
            sizes: list[int] = []
            for lineage, part in found:
                first_open = max(0, len(bins) - _OPEN_BINS)
                fits = (at for at in range(first_open, len(bins)) if sizes[at] + part.size <= self._target_bytes)
                at = next(fits, -1)
                if at < 0:
                    bins.append([])
                    sizes.append(0)
                bins[at].append((lineage, part))
                sizes[at] += part.size
            for inside in bins:
                lineage, first = inside[0]
                yield Bin(directory, f"compacted-{first.final}", tuple(part.hidden for _, part in inside), lineage)

    def _merge(self, bin_: Bin) -> None:
        inputs = bin_.input_paths
        if len(inputs) == 1:
            _rename(inputs[0], bin_.target_path)
            sync_paths([bin_.directory])
            return
        merged = os.path.join(bin_.directory, hidden_name(bin_.target, bin_.lineage))
        try:
            with open(merged, "wb") as stream:
                self._encoder.merge(inputs, stream)
        except OSError as error:
            raise cannot_write(merged, error) from error
        sync_paths([merged])
        _rename(merged, bin_.target_path)
        sync_paths([bin_.directory])
        for path in inputs:
            remove(path)

    def _end_begun(self, plan: str) -> None:
        """Do the rest of a plan that a crash left behind."""
        remove(beside(plan))
        try:
            with open(plan, "rb") as file:
                text = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise ConnectorError("cannot-read", f"File {plan} cannot be read: {error.strerror}") from error
        for directory, target, inputs, lineage in orjson.loads(text):
            bin_ = Bin(directory, target, tuple(inputs), lineage)
            there = [path for path in bin_.input_paths if os.path.exists(path)]
            if os.path.exists(bin_.target_path) or len(there) < len(bin_.inputs):
                # The rows are visible, or were until somebody took the file away.
                for path in there:
                    remove(path)
            else:
                self._merge(bin_)
        remove(plan)


def _plan_path(root: str, lineage: str) -> str:
    return os.path.join(root, f".compaction.{escape_path_name(lineage)}")


def _rename(source: str, target: str) -> None:
    try:
        os.replace(source, target)
    except OSError as error:
        raise cannot_write(target, error) from error
