"""Expected rows beside those that there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from flowsql.testing.rows import Row
from flowsql_core.record import record

#: Rows of a difference that are shown.
_MOST: int = 40


@record
class Difference:
    """Rows in the order in which they are shown, each with ``-`` (missing), ``+`` (too much) or a blank in front."""

    names: tuple[str, ...]
    lines: tuple[tuple[str, Row], ...]

    def summary(self) -> str:
        """How many rows are wrong."""
        missing = sum(sign == "-" for sign, _ in self.lines)
        surplus = sum(sign == "+" for sign, _ in self.lines)
        parts = [f"{_rows(missing)} missing"] if missing else []
        parts += [f"{_rows(surplus)} too much"] if surplus else []
        return ", ".join(parts)

    def render(self) -> str:
        """A table; what is right far from what is wrong is left out."""
        near = {
            other for place, (sign, _) in enumerate(self.lines) if sign != " " for other in range(place - 2, place + 3)
        }
        shown = [line for place, line in enumerate(self.lines) if place in near][:_MOST]
        table = table_text(self.names, [row for _, row in shown]).splitlines()
        signs = [" ", *(sign for sign, _ in shown)]
        lines = [f"{sign} {line}" for sign, line in zip(signs, table, strict=True)]
        left_out = sum(sign != " " for sign, _ in self.lines) - sum(sign != " " for sign, _ in shown)
        if left_out > 0:
            lines.append(f"  ... and {_rows(left_out)} more")
        return "\n".join(["  (- expected, + found)", *lines])


def compare(names: Sequence[str], wanted: Sequence[Row], found: Sequence[Row], in_order: bool) -> Difference | None:
    """What differs; None where nothing does. ``in_order``: the order of rows counts."""
    if in_order:
        if list(wanted) == list(found):
            return None
        lines: list[tuple[str, Row]] = []
        for tag, a, b, c, d in SequenceMatcher(None, list(wanted), list(found), autojunk=False).get_opcodes():
            if tag == "equal":
                lines += [(" ", row) for row in wanted[a:b]]
            else:
                lines += [("-", row) for row in wanted[a:b]] + [("+", row) for row in found[c:d]]
        return Difference(tuple(names), tuple(lines))
    expected, there = Counter(wanted), Counter(found)
    if expected == there:
        return None
    signed = [("-", row) for row in (expected - there).elements()] + [
        ("+", row) for row in (there - expected).elements()
    ]
    signed += [(" ", row) for row in (expected & there).elements()]
    return Difference(tuple(names), tuple(sorted(signed, key=lambda line: (line[1], line[0] == "+"))))


def table_text(names: Sequence[str], rows: Sequence[Row]) -> str:
    """A table as files of tests have it, a line a row."""
    from flowsql.table.values.tableau import text_width

    cells = [list(names), *([_escaped(cell) for cell in row] for row in rows)]
    widths = [max(text_width(row[place]) for row in cells) for place in range(len(names))]

    def line(row: Sequence[str]) -> str:
        padded = (cell + " " * (width - text_width(cell)) for cell, width in zip(row, widths, strict=True))
        return f"| {' | '.join(padded)} |\n"

    return "".join(map(line, cells))


def _escaped(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|")


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"
