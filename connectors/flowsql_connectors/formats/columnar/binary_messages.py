"""Messages that are bytes of their own, not lines: read as one column, told apart by their numbers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_connectors.formats.format import Columns, MessageDecoder, Messages
from flowsql_core.errors import ExecutionError
from flowsql_core.record import record


@record
class MessageRows:
    """Rows of a batch of messages. ``message``: for each row the number of its message, (rows,), ascending; None where
    each message gave one row."""

    columns: Columns
    message: npt.NDArray[np.int64] | None = None


class BadMessageError(ExecutionError):
    """A message that cannot be read; ``message_number``: among those that were to be read."""

    def __init__(self, number: int, code: str, text: str, hint: str | None = None) -> None:
        super().__init__(code, text, hint=hint)
        self.message_number = number


class BinaryMessages(MessageDecoder):
    """Decodes all messages of a batch at once."""

    @abstractmethod
    def rows(self, messages: Any) -> MessageRows:
        """The rows of messages, a binary column (n,); a NULL message gives none.

        Raises:
            BadMessageError: one of them is not what the format wants.
            ConnectorError: what the format needs besides them (a registry) does not answer.
        """

    def decode(self, messages: Messages) -> Columns:
        """The rows with the numbers of their messages; errors tell where the message is."""
        try:
            found = self.rows(messages.values)
        except BadMessageError as bad:
            where = messages.place(bad.message_number)
            raise ExecutionError(bad.code, f"{bad.message}\nin {where}", hint=bad.hint) from bad
        columns = found.columns
        numbers = np.arange(columns.num_rows) if found.message is None else found.message
        return Columns(columns.arrays if columns.num_rows else (), columns.num_rows, columns.kinds, numbers)
