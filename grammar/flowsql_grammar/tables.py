"""The parse tables: their file format and how they are read.

``tables.bin`` is zlib-compressed: a little-endian length (4 bytes), a text of that length, then unsigned 16-bit
numbers. The lines of the text, with blanks between items: names of the terminals (number 0 is the end), their texts,
start states and end states (``symbol=state``), actions, plans, and how many rules, symbol sets, rows and states follow.

The numbers: of every rule its left side, action and plan; the lengths of the sets; of every row how many single
symbols and how many groups it has; the row of every state; then the symbols of the sets, then the rows. A row is
pairs (symbol, step), then pairs (step, set): all symbols of the set have that step. ``2 * state`` shifts (or goes) to
a state, ``2 * rule + 1`` reduces by a rule. Equal rows and equal sets are stored once. Rows are unpacked when a parse
first meets them.

The plan of a rule has a letter for each symbol: ``k`` kept, ``.`` dropped, ``s`` spliced. Actions: ``splice`` a list
of the children for the rule above; ``only`` the single child; ``opt``, ``list``, ``words``, ``true``, ``false`` as
described in ``sql.lark``; anything else is a method of a builder.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path

PATH = Path(__file__).with_name("tables.bin")


class Tables:
    """The automaton, its rows unpacked on demand."""

    __slots__ = (
        "_offsets",
        "_row_numbers",
        "_rows",
        "_set_offsets",
        "_sets",
        "_shapes",
        "_unpacked",
        "actions",
        "display",
        "ends",
        "lefts",
        "plans",
        "rows",
        "skips",
        "starts",
        "terminal_ids",
        "terminals",
    )

    def __init__(self, data: bytes) -> None:
        """Read the bytes of the file."""
        raw = zlib.decompress(data)
        text_end = 4 + int.from_bytes(raw[:4], "little")
        lines = raw[4:text_end].decode().split("\n")
        numbers = array("H")
        numbers.frombytes(raw[text_end:])
        if sys.byteorder == "big":
            numbers.byteswap()
        self.terminals = lines[0].split(" ")
        self.display = lines[1].split(" ")
        self.terminal_ids = dict(zip(self.terminals, range(len(self.terminals)), strict=True))
        self.starts, self.ends = (_assigned(line) for line in lines[2:4])
        names, plans = lines[4].split(" "), lines[5].split(" ")
        rules, sets, rows, states = (int(count) for count in lines[6].split(" "))
        at = 3 * rules
        # By rule: the symbol it makes, what is done, and how its symbols are used (as many letters as symbols).
        self.lefts = numbers[:at:3].tolist()
        self.actions = [names[number] for number in numbers[1:at:3]]
        self.plans = [plans[number][1:] for number in numbers[2:at:3]]
        self._set_offsets = _running(numbers[at : at + sets])
        at += sets
        self._shapes = numbers[at : at + 2 * rows]
        at += 2 * rows
        self._row_numbers = numbers[at : at + states]
        at += states
        self._sets = numbers[at : at + self._set_offsets[-1]]
        self._rows = numbers[at + self._set_offsets[-1] :]
        self._offsets = _running(map(sum, zip(self._shapes[::2], self._shapes[1::2], strict=True)))
        self.rows: list[dict[int, int] | None] = [None] * states
        # Where runs of unit reductions end, by (terminal, state below, state); filled by the parser.
        self.skips: dict[int, int] = {}
        self._unpacked: dict[int, dict[int, int]] = {}

    def row(self, state: int) -> dict[int, int]:
        """Symbol to step of a state."""
        found = self.rows[state]
        if found is None:
            number = self._row_numbers[state]
            found = self._unpacked.get(number)
            if found is None:
                found = self._unpacked[number] = self._unpack(number)
            self.rows[state] = found
        return found

    def _unpack(self, number: int) -> dict[int, int]:
        pairs = self._rows[2 * self._offsets[number] : 2 * self._offsets[number + 1]]
        singles = 2 * self._shapes[2 * number]
        made = dict(zip(pairs[:singles:2], pairs[1:singles:2], strict=True))
        for k in range(singles, len(pairs), 2):
            group = pairs[k + 1]
            made |= dict.fromkeys(self._sets[self._set_offsets[group] : self._set_offsets[group + 1]], pairs[k])
        return made


_loaded: Tables | None = None


def tables() -> Tables:
    """The shipped tables, read once."""
    global _loaded
    if _loaded is None:
        _loaded = Tables(PATH.read_bytes())
    return _loaded


def _assigned(line: str) -> dict[str, int]:
    return {name: int(state) for name, _, state in (item.partition("=") for item in line.split(" "))}


def _running(lengths: Iterable[int]) -> list[int]:
    return list(accumulate(lengths, initial=0))
