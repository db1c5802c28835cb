"""``DataStreamSink``: the settings of what ends a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from flowsql.common.public_api import public_api
from flowsql.datastream.slot_sharing_group import SlotSharingGroup
from flowsql_core.graph.job import ChainingStrategy

if TYPE_CHECKING:
    from flowsql.datastream.plan.transformations import Recorder


@public_api
class DataStreamSink:
    """A sink that runs with the next ``execute``."""

    def __init__(self, recorder: Recorder, number: int) -> None:
        self._recorder = recorder
        self._number = number

    def name(self, name: str) -> Self:
        """Name the sink."""
        self._recorder.rename(self._number, name)
        return self

    def uid(self, uid: str) -> Self:
        """Identify the sink over edits of the program."""
        return self._set(uid=uid)

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Identify the sink by a hash; :meth:`uid` does what this does."""
        return self._set(uid=uid_hash)

    def set_parallelism(self, parallelism: int) -> Self:
        """Subtasks of the sink."""
        if parallelism < 1:
            raise ValueError("The parallelism of an operator must be at least 1.")
        return self._set(parallelism=parallelism)

    def set_description(self, description: str) -> Self:
        """Describe the sink in plans."""
        return self._set(description=description)

    def disable_chaining(self) -> Self:
        """Run the sink in a task of its own."""
        return self._set(chaining=ChainingStrategy.NEVER)

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Share tasks only with operators of the same group."""
        group = slot_sharing_group
        return self._set(slot_sharing_group=group.get_name() if isinstance(group, SlotSharingGroup) else group)

    def _set(self, **wishes: Any) -> Self:
        self._recorder.change(self._number, **wishes)
        return self
