"""Where state is kept, under the names of PyFlink's module: in memory, by ``HashMapStateBackend``."""

from __future__ import annotations

import enum
from typing import Final

from flowsql.common.refused import Refused

_IN_MEMORY: Final = "state is kept in memory: HashMapStateBackend, or no state backend at all"


class StateBackend:
    """Base of state backends."""


class HashMapStateBackend(StateBackend):
    """State as Python objects in memory: what FlowSQL does, said or not."""


class EmbeddedRocksDBStateBackend(metaclass=Refused, construct="state backends", hint=_IN_MEMORY):
    """State in RocksDB."""


class CustomStateBackend(metaclass=Refused, construct="state backends", hint=_IN_MEMORY):
    """State elsewhere."""


class PredefinedOptions(enum.Enum):
    """Settings of RocksDB; ``EmbeddedRocksDBStateBackend`` is refused."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3
