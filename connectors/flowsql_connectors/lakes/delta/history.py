"""Versions of a table: which one is read, and which files each of them adds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import pyarrow as pa
from deltalake import DeltaTable

from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_connectors.lakes.delta.connection import Address, said
from flowsql_connectors.lakes.delta.options import (
    IGNORE_CHANGES,
    IGNORE_DELETES,
    LATEST,
    STARTING_TIMESTAMP,
    STARTING_VERSION,
    TIMESTAMP_AS_OF,
    VERSION_AS_OF,
)
from flowsql_connectors.lakes.delta.partitions import texts
from flowsql_connectors.lakes.splits import FilePart, LakeHistory
from flowsql_connectors.options import ConnectorOption, OptionValues
from flowsql_core.config import LOCAL_TIME_ZONE
from flowsql_core.errors import BindError, ConnectorError, NotSupportedYetError

_VECTORS = "deletionVectors"


class DeltaHistory(LakeHistory):
    """See the base.

    Args:
        address: of the table.
        values: of its options.
        predicate: what wanted rows fulfil, by the schema of a table; None: nothing is known.
        configuration: of the job.
    """

    def __init__(
        self,
        address: Address,
        values: OptionValues,
        predicate: Callable[[DeltaTable], str | None],
        configuration: Mapping[str, str],
    ) -> None:
        self._address = address
        self._values = values
        self._predicate = predicate
        zone = configuration.get(LOCAL_TIME_ZONE.key, LOCAL_TIME_ZONE.default)
        self._zone = ZoneInfo(machine_zone() if zone == LOCAL_TIME_ZONE.default else zone)

    def table(self) -> DeltaTable:
        """The version that is read."""
        version, moment = self._values.get(VERSION_AS_OF), self._values.get(TIMESTAMP_AS_OF)
        if version is not None:
            return self._address.load(version)
        if moment is None:
            return self._address.load()
        at = self._moment(TIMESTAMP_AS_OF, moment)
        table = self._address.load(at)
        # The library takes the first version for any time before it.
        oldest_ms = min((one["timestamp"] for one in table.history()), default=0)
        if at.timestamp() * 1000 < oldest_ms:
            raise BindError(
                "lake-snapshot",
                f"Delta table '{self._address.uri}' had no version at {moment} ('{TIMESTAMP_AS_OF.key}').",
                hint=f"the oldest is of {datetime.fromtimestamp(oldest_ms / 1000, self._zone).isoformat(' ')}",
            )
        return table

    def files(self) -> list[FilePart]:
        """Of that version."""
        table = self.table()
        with said(f"Delta table '{self._address.uri}'"):
            return self._whole(table)

    def _moment(self, option: ConnectorOption[str | None], text: str) -> datetime:
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            raise BindError(
                "invalid-option-value",
                f"Could not parse value '{text}' for key '{option.key}'.",
                hint="as 2026-01-31, 2026-01-31 12:00:00 or 2026-01-31T12:00:00Z; without a zone it is the session's",
            ) from None
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=self._zone)).astimezone(UTC)

    def _whole(self, table: DeltaTable) -> list[FilePart]:
        self._check_vectors(table)
        added = pa.table(table.get_add_actions(flatten=True))
        keys = table.metadata().partition_columns
        values = {key: texts(added.column(f"partition.{key}")) for key in keys}
        paths, sizes = added.column("path").to_pylist(), added.column("size_bytes").to_pylist()
        ages = added.column("modification_time").to_pylist()
        kept = self._kept(table, paths)
        return [
            _part(paths[at], sizes[at], {key: values[key][at] for key in keys})
            for at in sorted(range(len(paths)), key=lambda at: (ages[at], paths[at]))
            if paths[at] in kept
        ]

    def _check_vectors(self, table: DeltaTable) -> None:
        features = table.protocol().reader_features or ()
        if _VECTORS in features and any(batch.num_rows for batch in pa.table(table.deletion_vectors()).to_batches()):
            raise self._vectors()

    def _vectors(self) -> NotSupportedYetError:
        return NotSupportedYetError(
            f"Delta files with deletion vectors ('{self._address.uri}')",
            hint="REORG TABLE ... APPLY (PURGE) of Spark, or an optimize, writes them without",
        )

    def _kept(self, table: DeltaTable, paths: list[str]) -> set[str]:
        """The files that the filters leave."""
        predicate = self._predicate(table)
        if predicate is None or not paths:
            return set(paths)
        left = table.file_uris(file_pruning_predicate=predicate)
        # The library names files from the root on here, and from the table's folder on elsewhere.
        relative = {unquote(path): path for path in paths}
        heads = {uri[: -len(name)] for uri in left[:1] for name in relative if uri.endswith(f"/{name}")}
        if left and len(heads) != 1:
            return set(paths)
        head = next(iter(heads), "")
        return {path for uri in left if (path := relative.get(uri.removeprefix(head))) is not None}

    # -- following

    def start(self) -> tuple[list[FilePart], str]:
        """The whole table; or no more than the changes from a version on."""
        table = self._address.load()
        newest = table.version()
        wanted, moment = self._values.get(STARTING_VERSION), self._values.get(STARTING_TIMESTAMP)
        with said(f"Delta table '{self._address.uri}'"):
            if wanted == LATEST:
                return [], str(newest)
            if wanted is not None:
                if int(wanted) > newest + 1:
                    raise BindError(
                        "lake-snapshot",
                        f"Delta table '{self._address.uri}' has no version {wanted} ('{STARTING_VERSION.key}').",
                        hint=f"the newest is {newest}",
                    )
                return self._changes(int(wanted), newest)
            if moment is not None:
                at_ms = int(self._moment(STARTING_TIMESTAMP, moment).timestamp() * 1000)
                later = [one["version"] for one in table.history() if one["timestamp"] >= at_ms]
                return self._changes(min(later, default=newest + 1), newest)
            return self._whole(table), str(newest)

    def since(self, position: str) -> tuple[list[FilePart], str]:
        """Of the versions behind it."""
        newest = self._address.load().version()
        with said(f"Delta table '{self._address.uri}'"):
            return self._changes(int(position) + 1, newest)

    def _changes(self, first: int, last: int) -> tuple[list[FilePart], str]:
        files = self._address.files() if first <= last else None
        parts = [part for version in range(first, last + 1) for part in self._added(files, version)]
        return parts, str(max(first - 1, last))

    def _added(self, files: Any, version: int) -> list[FilePart]:
        try:
            with files.open_input_file(f"_delta_log/{version:020d}.json") as log:
                actions = [json.loads(line) for line in log.read().splitlines() if line.strip()]
        except FileNotFoundError as error:
            raise ConnectorError(
                "lake-history",
                f"Delta table '{self._address.uri}' does not tell any more what its version {version} changed: its log "
                "was cleaned up.",
                hint="start the job anew; 'startingVersion' says with which rows",
            ) from error
        adds = [action["add"] for action in actions if action.get("add", {}).get("dataChange")]
        removes = [action["remove"] for action in actions if action.get("remove", {}).get("dataChange")]
        if removes and not self._values.get(IGNORE_CHANGES):
            if adds:
                raise self._changed(version, "rewrites files", IGNORE_CHANGES)
            if not self._values.get(IGNORE_DELETES):
                raise self._changed(version, "deletes files", IGNORE_DELETES)
        if any(add.get("deletionVector") for add in adds):
            raise self._vectors()
        return [_part(add["path"], add["size"], add["partitionValues"]) for add in adds]

    def _changed(self, version: int, does: str, option: ConnectorOption[bool]) -> ConnectorError:
        return ConnectorError(
            "lake-changes",
            f"Version {version} of Delta table '{self._address.uri}' {does}, and a table is followed by what is "
            "appended.",
            hint=f"'{option.key}' = 'true': {option.doc.removeprefix('Streaming: ')}",
        )


def _part(path: str, size_bytes: int, partition: Mapping[str, str | None]) -> FilePart:
    relative = unquote(path)
    return FilePart(relative, {"path": relative, "bytes": size_bytes, "partition": dict(partition)}, size_bytes)
