"""The newest rows of a table whose connector knows where they are: what is there in order of time, what is added."""

from __future__ import annotations

from abc import ABC, abstractmethod

from flowsql_connectors.spi.source import Split


class TableTail(ABC):
    """Looks at one table. One thread."""

    @abstractmethod
    def parts(self, part_bytes: int) -> list[list[Split]]:
        """All that is there, as parts of about so many bytes; one behind another they are the table, the newest last.

        Raises:
            ConnectorError: there is nothing, or it may not be read.
        """

    @abstractmethod
    def added(self) -> list[Split]:
        """What was added since :meth:`parts` or this was called; of what is being written only whole rows."""

    @property
    @abstractmethod
    def interval_ms(self) -> int | None:
        """How often the table's options say to look; None: they do not."""
