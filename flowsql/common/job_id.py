"""``JobID``: the name of a run."""

from __future__ import annotations


class JobID(str):
    """32 hexadecimal digits."""

    __slots__ = ()
