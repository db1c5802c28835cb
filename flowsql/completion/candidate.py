"""One text that may stand at the cursor."""

from __future__ import annotations

import re
from typing import Final

from flowsql_core.record import record

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@record
class Candidate:
    """``text`` takes the place of what stands from ``start`` to the cursor; ``shown`` and ``detail`` are for people."""

    text: str
    start: int
    shown: str
    detail: str = ""


def quoted(name: str) -> str:
    """A name as SQL takes it: in back-ticks where it must be."""
    from flowsql_grammar.reserved import RESERVED

    plain = _PLAIN.fullmatch(name) is not None and name.upper() not in RESERVED
    return name if plain else "`" + name.replace("`", "``") + "`"
