"""Windows as bytes, under PyFlink's names: what ``get_window_serializer`` of a program's own assigner answers.

State of windows is saved as Python objects here, so that an assigner needs none of them.
"""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Final

from flowsql.common.serializer import TypeSerializer
from flowsql_core.stream.window import CountWindow, GlobalWindow, TimeWindow

_TWO_LONGS: Final = struct.Struct(">qq")
_LONG: Final = struct.Struct(">q")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Start and end, eight bytes each."""

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        """Append."""
        stream.write(_TWO_LONGS.pack(element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        """Read."""
        return TimeWindow(*_TWO_LONGS.unpack(stream.read(_TWO_LONGS.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """The number, eight bytes."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        """Append."""
        stream.write(_LONG.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        """Read."""
        return CountWindow(*_LONG.unpack(stream.read(_LONG.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """There is only one: a single byte."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:
        """Append."""
        stream.write(b"\0")

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        """Read."""
        stream.read(1)
        return GlobalWindow.get()
