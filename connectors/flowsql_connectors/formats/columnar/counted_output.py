"""Where Arrow's writers of files put their bytes: on to the stream of a part file, counted."""

from __future__ import annotations

from typing import Any

from flowsql_connectors.formats.format import PartStream


class CountedOutput:
    """The file object that Arrow wants. ``written``: the bytes that went through."""

    def __init__(self, stream: PartStream) -> None:
        self._stream = stream
        self.written = 0
        self.closed = False

    def write(self, data: Any) -> int:
        """To the stream."""
        self.written += self._stream.write(bytes(data))
        return len(data)

    def tell(self) -> int:
        """The position behind what was written."""
        return self.written

    def flush(self) -> None:
        """Nothing is kept back here."""

    def writable(self) -> bool:
        """It is written to."""
        return True

    def readable(self) -> bool:
        """It is not read."""
        return False

    def seekable(self) -> bool:
        """It only grows."""
        return False

    def close(self) -> None:
        """The stream stays open."""
        self.closed = True
