"""``SlotSharingGroup``: operators of different groups do not share a task."""

from __future__ import annotations

from typing import NoReturn

from flowsql_core.errors import NotSupportedYetError


class MemorySize:
    """A number of bytes. Groups with resources are refused: see :class:`SlotSharingGroup`.

    >>> MemorySize.of_mebi_bytes(2).get_bytes()
    2097152
    """

    def __init__(self, bytes_size: int) -> None:
        if bytes_size < 0:
            raise ValueError("bytes must be >= 0")
        self._bytes = bytes_size

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """So many units of 1,048,576 bytes."""
        return MemorySize(mebi_bytes << 20)

    def get_bytes(self) -> int:
        """Bytes."""
        return self._bytes

    def get_kibi_bytes(self) -> int:
        """Whole units of 1,024 bytes."""
        return self._bytes >> 10

    def get_mebi_bytes(self) -> int:
        """Whole units of 1,024 times 1,024 bytes."""
        return self._bytes >> 20

    def get_gibi_bytes(self) -> int:
        """Whole units of 1,024 to the third."""
        return self._bytes >> 30

    def get_tebi_bytes(self) -> int:
        """Whole units of 1,024 to the fourth."""
        return self._bytes >> 40

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemorySize) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __lt__(self, other: MemorySize) -> bool:
        return self._bytes < other._bytes

    def __le__(self, other: MemorySize) -> bool:
        return self._bytes <= other._bytes

    def __str__(self) -> str:
        return f"{self._bytes} bytes"


class SlotSharingGroup:
    """A named group. Made by ``SlotSharingGroup.builder("name").build()``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def get_name(self) -> str:
        """The name."""
        return self._name

    def get_cpu_cores(self) -> float | None:
        """None: nothing is reserved."""
        return None

    def get_managed_memory(self) -> MemorySize | None:
        """None: nothing is reserved."""
        return None

    def get_task_heap_memory(self) -> MemorySize | None:
        """None: nothing is reserved."""
        return None

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """None: nothing is reserved."""
        return None

    def get_external_resources(self) -> dict[str, float]:
        """Empty: nothing is reserved."""
        return {}

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Begin a group."""
        return SlotSharingGroup.Builder(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlotSharingGroup) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)

    class Builder:
        """Makes a group. Resources of a group are refused: tasks are threads and share one machine."""

        def __init__(self, name: str) -> None:
            self._name = name

        def set_cpu_cores(self, cpu_cores: float) -> NoReturn:
            """Refused."""
            raise _no_resources()

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> NoReturn:
            """Refused."""
            raise _no_resources()

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> NoReturn:
            """Refused."""
            raise _no_resources()

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> NoReturn:
            """Refused."""
            raise _no_resources()

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> NoReturn:
            """Refused."""
            raise _no_resources()

        def set_managed_memory(self, managed_memory: MemorySize) -> NoReturn:
            """Refused."""
            raise _no_resources()

        def set_managed_memory_mb(self, managed_memory_mb: int) -> NoReturn:
            """Refused."""
            raise _no_resources()

        def set_external_resource(self, name: str, value: float) -> NoReturn:
            """Refused."""
            raise _no_resources()

        def build(self) -> SlotSharingGroup:
            """The group."""
            return SlotSharingGroup(self._name)


def _no_resources() -> NotSupportedYetError:
    return NotSupportedYetError(
        "resources of a slot sharing group", hint="leave them out: tasks are threads that share one machine"
    )
