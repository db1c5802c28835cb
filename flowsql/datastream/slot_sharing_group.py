"""``SlotSharingGroup``: operators of different groups do not share a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from flowsql.configuration import warn_program

_HEAP: Final = "heap"
_OFF_HEAP: Final = "off-heap"
_MANAGED: Final = "managed"


class MemorySize:
    """A number of bytes.

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
    """A named group. Made by ``SlotSharingGroup.builder("name").build()``.

    Its resources are kept, and have no effect: tasks are threads that share one machine.
    """

    def __init__(
        self,
        name: str,
        cpu_cores: float | None = None,
        memory: Mapping[str, MemorySize] | None = None,
        external: Mapping[str, float] | None = None,
    ) -> None:
        self._name = name
        self._cpu_cores = cpu_cores
        self._memory = dict(memory or {})
        self._external = dict(external or {})

    def get_name(self) -> str:
        """The name."""
        return self._name

    def get_cpu_cores(self) -> float | None:
        """Return the number of cores that was given, or None."""
        return self._cpu_cores

    def get_managed_memory(self) -> MemorySize | None:
        """Return the memory of the state backend that was given; 0 beside other resources, None without any."""
        return self._memory_of(_MANAGED)

    def get_task_heap_memory(self) -> MemorySize | None:
        """Return the memory on the heap that was given, or None."""
        return self._memory_of(_HEAP)

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Return the memory off the heap that was given; 0 beside other resources, None without any."""
        return self._memory_of(_OFF_HEAP)

    def _memory_of(self, kind: str) -> MemorySize | None:
        return None if self._cpu_cores is None else self._memory.get(kind, MemorySize(0))

    def get_external_resources(self) -> dict[str, float]:
        """Return amounts of other resources by name."""
        return dict(self._external)

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Begin a group."""
        return SlotSharingGroup.Builder(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlotSharingGroup) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self._name)

    class Builder:
        """Makes a group. Its resources have no effect, and whoever sets some is warned."""

        def __init__(self, name: str) -> None:
            self._name = name
            self._cpu_cores: float | None = None
            self._memory: dict[str, MemorySize] = {}
            self._external: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> Self:
            """Set a number of cores.

            Raises:
                ValueError: it is not positive.
            """
            if cpu_cores <= 0:
                raise ValueError("The cpu cores should be positive.")
            self._cpu_cores = cpu_cores
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> Self:
            """Set the memory on the heap.

            Raises:
                ValueError: it is 0.
            """
            if task_heap_memory <= MemorySize(0):
                raise ValueError("The task heap memory should be positive.")
            self._memory[_HEAP] = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> Self:
            """Set the memory on the heap, units of 1,048,576 bytes."""
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> Self:
            """Set the memory off the heap."""
            self._memory[_OFF_HEAP] = task_off_heap_memory
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> Self:
            """Set the memory off the heap, units of 1,048,576 bytes."""
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> Self:
            """Set the memory of the state backend."""
            self._memory[_MANAGED] = managed_memory
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> Self:
            """Set the memory of the state backend, units of 1,048,576 bytes."""
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> Self:
            """Set an amount of another resource."""
            self._external[name] = value
            return self

        def build(self) -> SlotSharingGroup:
            """Return the group.

            Raises:
                ValueError: it has resources, but no cores or no memory on the heap.
            """
            if self._cpu_cores is None and not self._memory and not self._external:
                return SlotSharingGroup(self._name)
            if self._cpu_cores is None or _HEAP not in self._memory:
                raise ValueError(
                    "The cpu cores and task heap memory are required when specifying the resource of a slot sharing "
                    "group. You need to explicitly configure them with positive value."
                )
            warn_program(
                f"resources of the slot sharing group '{self._name}' have no effect: tasks are threads that share one "
                "machine."
            )
            return SlotSharingGroup(self._name, self._cpu_cores, self._memory, self._external)
