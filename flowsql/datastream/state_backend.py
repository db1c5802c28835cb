"""Where state is kept, under the names of PyFlink's module: ``StreamExecutionEnvironment.set_state_backend``.

The option ``state.backend.type`` says the same.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from urllib.parse import urlsplit

from flowsql.common.public_api import public_api
from flowsql.common.refused import Refused
from flowsql_core.errors import NotSupportedYetError

__all__ = [
    "CustomStateBackend",
    "EmbeddedRocksDBStateBackend",
    "HashMapStateBackend",
    "PredefinedOptions",
    "StateBackend",
]


class StateBackend:
    """Base of state backends. ``options``: what choosing the backend sets."""

    @property
    def options(self) -> Mapping[str, str]:
        """Options by key."""
        return {}


class HashMapStateBackend(StateBackend):
    """State as Python objects in memory."""

    @property
    def options(self) -> Mapping[str, str]:
        """Options by key."""
        return {"state.backend.type": "hashmap"}


class PredefinedOptions(enum.Enum):
    """Settings of RocksDB for kinds of disks."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


@public_api
class EmbeddedRocksDBStateBackend(StateBackend):
    """State in RocksDB, on local disk. What is not set here is left to the options ``state.backend.rocksdb.*``.

    Args:
        enable_incremental_checkpointing: whether a checkpoint writes only what is new; None: as
            ``execution.checkpointing.incremental`` says.

    Example: ``env.set_state_backend(EmbeddedRocksDBStateBackend(True))``.

    Raises:
        TypeError: ``enable_incremental_checkpointing`` is not True, False or None.

    Source: Flink, ``EmbeddedRocksDBStateBackend``.
    """

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        if enable_incremental_checkpointing not in (None, True, False):
            raise TypeError(
                f"Unsupported input for 'enable_incremental_checkpointing': {enable_incremental_checkpointing!r}, the "
                "value of the parameter should be None or True or False."
            )
        self._incremental = enable_incremental_checkpointing
        self._paths: tuple[str, ...] = ()
        self._predefined: PredefinedOptions | None = None
        self._threads: int | None = None

    @property
    def options(self) -> Mapping[str, str]:
        """Options by key."""
        found = {"state.backend.type": "rocksdb"}
        if self._incremental is not None:
            found["execution.checkpointing.incremental"] = "true" if self._incremental else "false"
        if self._paths:
            found["state.backend.rocksdb.localdir"] = ",".join(self._paths)
        if self._predefined is not None:
            found["state.backend.rocksdb.predefined-options"] = self._predefined.name
        if self._threads is not None:
            found["state.backend.rocksdb.checkpoint.transfer.thread.num"] = str(self._threads)
        return found

    def set_db_storage_paths(self, *paths: str) -> None:
        """Set the local folders of RocksDB's files; none: those of ``io.tmp.dirs``.

        Raises:
            ValueError: a path is relative or not local.
        """
        self._paths = tuple(map(_local_path, paths))

    def get_db_storage_paths(self) -> list[str] | None:
        """Return the local folders; None where none were set."""
        return list(self._paths) or None

    def is_incremental_checkpoints_enabled(self) -> bool:
        """True if a checkpoint writes only what is new; False too where nothing was said."""
        return bool(self._incremental)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Set options of RocksDB for a kind of disk."""
        self._predefined = PredefinedOptions(options)

    def get_predefined_options(self) -> PredefinedOptions:
        """Return the options for a kind of disk."""
        return self._predefined or PredefinedOptions.DEFAULT

    def set_options(self, options_factory_class_name: str) -> None:
        """Refused: the name is one of a Java class.

        Raises:
            NotSupportedYetError: always.
        """
        raise NotSupportedYetError(
            f"the options factory {options_factory_class_name} of Java", hint="set options 'state.backend.rocksdb.*'"
        )

    def get_options(self) -> str | None:
        """None: there is no factory of options."""
        return None

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Set how many threads of a subtask copy files to and from checkpoints.

        Raises:
            ValueError: the number is below 1.
        """
        if number_of_transfering_threads < 1:
            raise ValueError(
                "The number of threads used to transfer files in EmbeddedRocksDBStateBackend should be greater than "
                "zero."
            )
        self._threads = number_of_transfering_threads

    def get_number_of_transfer_threads(self) -> int:
        """Return how many threads of a subtask copy files."""
        return 4 if self._threads is None else self._threads


def _local_path(path: str) -> str:
    found = urlsplit(path)
    if found.scheme not in ("", "file"):
        raise ValueError(f"Path {path} has a non-local scheme")
    if not found.path.startswith("/"):
        raise ValueError(f"Relative paths are not supported: {path}")
    return found.path.rstrip("/") or "/"


class CustomStateBackend(
    metaclass=Refused, construct="state backends", hint="HashMapStateBackend or EmbeddedRocksDBStateBackend"
):
    """State elsewhere."""
