"""The parse tables: their file format and how they are read.

``tables.bin`` is zlib-compressed: a little-endian length (4 bytes), a JSON header of that length, then the rows. A row
is a run of pairs of unsigned 16-bit numbers (symbol, action); ``2 * state`` shifts (or goes) to a state,
``2 * rule + 1`` reduces by a rule. Equal rows are stored once. Rows are unpacked when a parse first meets them.

The header: ``terminals`` (names; number 0 is the end), ``display`` (their texts), ``starts`` and ``ends`` (states by
start symbol), ``rules``, ``row_lengths`` (pairs a row), ``rows`` (row of each state). A rule is (left side, number of
symbols, action, plan). The plan has a letter for each symbol: ``k`` kept, ``.`` dropped, ``s`` spliced. Actions:
``splice`` a list of the children for the rule above; ``only`` the single child; ``opt``, ``list``, ``words``, ``true``,
``false`` as described in ``sql.lark``; anything else is a method of the builder.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from dataclasses import dataclass, field
from pathlib import Path

from flowsql_core.record import record

PATH = Path(__file__).parent / "tables.bin"


@record
class Rule:
    """One production."""

    left: int
    length: int
    action: str
    plan: str
    # Positions of the kept symbols where nothing is spliced, else None.
    kept: tuple[int, ...] | None
    # One symbol for another, value unchanged.
    is_unit: bool


@dataclass(slots=True)
class Tables:
    """The automaton, its rows unpacked on demand."""

    terminals: list[str]
    display: list[str]
    starts: dict[str, int]
    ends: dict[str, int]
    rules: list[Rule]
    rows: list[dict[int, int] | None]
    terminal_ids: dict[str, int]
    _row_numbers: list[int]
    _offsets: list[int]
    _pairs: array[int]
    # Where runs of unit reductions end, by (terminal, state below, state); filled by the parser.
    skips: dict[int, int] = field(default_factory=dict)
    _unpacked: dict[int, dict[int, int]] = field(default_factory=dict)

    def row(self, state: int) -> dict[int, int]:
        """Symbol to action of a state."""
        found = self.rows[state]
        if found is None:
            number = self._row_numbers[state]
            found = self._unpacked.get(number)
            if found is None:
                pairs = self._pairs[self._offsets[number] : self._offsets[number + 1]]
                found = self._unpacked[number] = dict(zip(pairs[::2], pairs[1::2], strict=True))
            self.rows[state] = found
        return found


_loaded: Tables | None = None


def tables() -> Tables:
    """The shipped tables, read once."""
    global _loaded
    if _loaded is None:
        _loaded = decode(PATH.read_bytes())
    return _loaded


def decode(data: bytes) -> Tables:
    """Tables from the bytes of their file."""
    raw = zlib.decompress(data)
    header_end = 4 + int.from_bytes(raw[:4], "little")
    header = json.loads(raw[4:header_end])
    pairs = array("H")
    pairs.frombytes(raw[header_end:])
    if sys.byteorder == "big":
        pairs.byteswap()
    offsets = [0]
    for length in header["row_lengths"]:
        offsets.append(offsets[-1] + 2 * length)
    return Tables(
        terminals=header["terminals"],
        display=header["display"],
        starts=header["starts"],
        ends=header["ends"],
        rules=[
            Rule(left, length, action, plan, _kept(plan), length == 1 and plan == "k" and action in ("only", "opt"))
            for left, length, action, plan in header["rules"]
        ],
        rows=[None] * len(header["rows"]),
        terminal_ids={name: number for number, name in enumerate(header["terminals"])},
        _row_numbers=header["rows"],
        _offsets=offsets,
        _pairs=pairs,
    )


def _kept(plan: str) -> tuple[int, ...] | None:
    return None if "s" in plan else tuple([i for i, letter in enumerate(plan) if letter == "k"])
