"""Merging small files before they become visible: Flink's CompactCoordinator and CompactOperator.

The rows of a group of files become visible by one rename of the merged file; its inputs are hidden all the time and
removed then. Which files go together is written down, durably, before the first rename: a commit that is repeated after
a crash, maybe with the files of a later checkpoint beside them, first ends what was begun, so that no file is merged
twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence, Set
from typing import BinaryIO

import orjson

from flowsql_connectors.filesystem.durable import beside, cannot_write, remove, sync_paths, write_atomically
from flowsql_connectors.filesystem.files import escape_path_name
from flowsql_connectors.filesystem.names import hidden_name
from flowsql_connectors.filesystem.packing import Packing, Waiting
from flowsql_core.errors import ConnectorError, ExecutionError, InternalError
from flowsql_core.record import record

#: Writes the rows of several files into one.
Merge = Callable[[Sequence[str], BinaryIO], None]


@record
class Bin:
    """Hidden files of one directory that become one visible file."""

    directory: str
    target: str
    inputs: tuple[str, ...]
    lineage: str

    @staticmethod
    def of(group: Sequence[Waiting]) -> Bin:
        """The first file gives its name."""
        first = group[0]
        inputs = tuple(one.part.hidden for one in group)
        return Bin(first.part.directory, f"compacted-{first.part.final}", inputs, first.lineage)

    @property
    def target_path(self) -> str:
        """The visible file."""
        return os.path.join(self.directory, self.target)

    @property
    def input_paths(self) -> list[str]:
        """The hidden files."""
        return [os.path.join(self.directory, name) for name in self.inputs]


class Compactor:
    """Shows the parts of checkpoints as few files.

    Args:
        packing: which files become one, and when.
        merge: how; None: no group may have several files (Flink's IdenticalFileCompactor).
        threads: groups that are merged at once.
        rewrites: whether a file without another one is merged, too; else it gets its name as it is.
    """

    def __init__(self, packing: Packing, merge: Merge | None, threads: int = 1, rewrites: bool = False) -> None:
        self.packing = packing
        self._merge_files = merge
        self._threads = threads
        self._rewrites = rewrites

    def show(
        self, waiting: Sequence[Waiting], root: str, lineages: Set[str], checkpoints: int, *, repeats: bool, ended: bool
    ) -> list[Waiting]:
        """Make parts visible; those that wait on.

        Args:
            waiting: in the order in which they are merged.
            root: the sink's folder.
            lineages: of all committables of this commit.
            checkpoints: see :meth:`Packing.groups`.
            repeats: an earlier commit may have merged some of them.
            ended: no part follows.

        Raises:
            ConnectorError: the disk refused.
            ExecutionError: several files without a way to merge them.
        """
        for lineage in sorted(lineages):
            self._end_begun(_plan_path(root, lineage))
        left = []
        for one in waiting:
            if os.path.exists(one.part.hidden_path):
                left.append(one)
            elif not repeats:
                raise ConnectorError("lost-part", f"Part file {one.part.hidden_path} is gone before it was committed.")
        groups = self.packing.groups(left, checkpoints, ended)
        bins = [Bin.of(group) for group in groups]
        if not bins:
            return left
        most = max(len(group) for group in groups)
        if self._merge_files is None and most > 1:
            raise ExecutionError(
                "several-files",
                f"IdenticalFileCompactor can only copy one input file, not {most}.",
                hint="FileCompactor.concat_file_compactor() merges files",
            )
        plan = None
        if self._rewrites or most > 1:
            plan = _plan_path(root, min(lineages))
            write_atomically(
                plan, orjson.dumps([[bin_.directory, bin_.target, bin_.inputs, bin_.lineage] for bin_ in bins])
            )
        self._merge_all(bins)
        if plan is not None:
            remove(plan)
        shown = {one.part.hidden_path for group in groups for one in group}
        return [one for one in left if one.part.hidden_path not in shown]

    def _merge_all(self, bins: Sequence[Bin]) -> None:
        if self._threads == 1 or len(bins) == 1:
            for bin_ in bins:
                self._merge(bin_)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self._threads, thread_name_prefix="file-compaction") as pool:
            for _ in pool.map(self._merge, bins):
                pass

    def _merge(self, bin_: Bin) -> None:
        inputs = bin_.input_paths
        if len(inputs) == 1 and not self._rewrites:
            _rename(inputs[0], bin_.target_path)
            sync_paths([bin_.directory])
            return
        if self._merge_files is None:
            raise InternalError("files were to be merged without a way to do it")
        merged = os.path.join(bin_.directory, hidden_name(bin_.target, bin_.lineage))
        try:
            with open(merged, "wb") as stream:
                self._merge_files(inputs, stream)
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
