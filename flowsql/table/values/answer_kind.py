"""What is behind an answer."""

from __future__ import annotations

import enum


class AnswerKind(enum.Enum):
    """What is behind a result; decides how it prints.

    DONE: nothing but success. LISTING: rows known at once (SHOW, DESCRIBE). TEXT: one text (EXPLAIN). QUERY: the rows
    of a SELECT. CHANGE: a job that writes (INSERT).
    """

    DONE = "done"
    LISTING = "listing"
    TEXT = "text"
    QUERY = "query"
    CHANGE = "change"
