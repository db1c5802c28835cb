"""Names of what readers and writers count, through the ``count`` of their contexts (FLIP-33)."""

from __future__ import annotations

from typing import Final

#: Bytes of a table that were read where it is stored: of a file, of each range that was read to its end.
BYTES_READ: Final = "numBytesIn"
#: Bytes that were written where a table is stored.
BYTES_SENT: Final = "numBytesSend"
