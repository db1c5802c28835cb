"""Tables of deltalake, opened by the options of a table, and what is said when that fails."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaProtocolError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from flowsql_connectors.file_systems.choice import is_remote
from flowsql_connectors.filesystem.files import local_path
from flowsql_connectors.lakes.delta.options import PROPERTY, TABLE_PATH, storage_options
from flowsql_connectors.lakes.delta.types import to_delta
from flowsql_core.errors import BindError, ConnectorError, FlowSqlError, NotSupportedYetError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record

_COLUMN_MAPPING = "delta.columnMapping.mode"


@record
class Address:
    """Where a table is: a path or URI, and what the library is told of the storage."""

    uri: str
    storage: tuple[tuple[str, str], ...]

    def load(self, version: Any = None) -> DeltaTable:
        """The table as it is, or as of a version or time.

        Raises:
            ConnectorError: there is none.
            NotSupportedYetError: its columns have other names in its files.
        """
        with said(f"Delta table '{self.uri}'"):
            table = DeltaTable(self.uri, storage_options=dict(self.storage))
            if version is not None:
                table.load_as_version(version)
            mode = table.metadata().configuration.get(_COLUMN_MAPPING, "none")
        if mode != "none":
            raise NotSupportedYetError(
                f"Delta tables with column mapping ('{self.uri}' has '{_COLUMN_MAPPING}' = '{mode}')"
            )
        return table

    def load_or_create(self, declared: TableSpec) -> DeltaTable:
        """The table; one that is not there is made as it is declared."""
        with said(f"Delta table '{self.uri}'"):
            if not DeltaTable.is_deltatable(self.uri, dict(self.storage)):
                properties = {
                    key: value for key, value in declared.filled_options().items() if key.startswith(PROPERTY)
                }
                DeltaTable.create(
                    self.uri,
                    Schema.from_arrow(to_delta(declared.columns)),
                    # Another subtask may have made it meanwhile.
                    mode="ignore",
                    partition_by=list(declared.partition_keys),
                    configuration=properties,
                    storage_options=dict(self.storage),
                )
        return self.load()

    def files(self) -> Any:
        """The table's folder as a file system of Arrow; paths are relative to it."""
        return fs.PyFileSystem(DeltaStorageHandler(self.uri, dict(self.storage)))


def address_of(table: TableSpec, configuration: Mapping[str, str]) -> Address:
    """Where the table of a declaration is.

    Raises:
        BindError: a password in the path.
    """
    path = table.option(TABLE_PATH.key) or ""
    host = path.partition("://")[2].partition("/")[0]
    if ":" in host.rpartition("@")[0]:
        scheme = path.partition("://")[0]
        raise BindError(
            "secret-in-path",
            f"The path '{scheme}://***@{host.rpartition('@')[2]}' holds a password, which messages would show.",
            hint="options 'storage.*' are the place for it, as ${env:NAME} or ${file:PATH}",
        )
    uri = path.rstrip("/") if is_remote(path) else os.path.abspath(local_path(path))
    return Address(uri, tuple(sorted(storage_options(table, configuration).items())))


def arrow_schema(table: DeltaTable) -> pa.Schema:
    """The schema of a table."""
    return pa.schema(table.schema().to_arrow())


@contextmanager
def said(what: str) -> Iterator[None]:
    """What deltalake and what is below it raise, as one sentence about ``what``."""
    try:
        yield
    except (FlowSqlError, CommitFailedError):
        raise
    except TableNotFoundError as error:
        raise ConnectorError("lake-table", f"{what} does not exist.") from error
    except DeltaProtocolError as error:
        raise ConnectorError(
            "lake-protocol", f"{what} has features that deltalake does not read: {_line(error)}."
        ) from error
    except PermissionError as error:
        raise ConnectorError("lake-refused", f"{what}: access is refused: {_line(error)}.") from error
    except FileNotFoundError as error:
        raise ConnectorError("lake-file", f"{what}: a file is missing: {_line(error)}.") from error
    except Exception as error:  # deltalake, its object stores and Arrow raise what they like
        raise ConnectorError("lake-failed", f"{what}: {_line(error)}.", retryable=isinstance(error, OSError)) from error


def _line(error: Exception) -> str:
    """What an error says, in one line."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".")
