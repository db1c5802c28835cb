"""``SlotSharingGroup``: operators of different groups do not share a task."""

from __future__ import annotations

from flowsql_core.errors import NotSupportedYetError


class SlotSharingGroup:
    """A named group. Made by ``SlotSharingGroup.builder("name").build()``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def get_name(self) -> str:
        """The name."""
        return self._name

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

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """Refused."""
            raise NotSupportedYetError("resources of a slot sharing group")

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Refused."""
            raise NotSupportedYetError("resources of a slot sharing group")

        def build(self) -> SlotSharingGroup:
            """The group."""
            return SlotSharingGroup(self._name)
