"""Documents: texts with places where a line may break, and how they are laid out within a width.

After Wadler's "A prettier printer": a group stands on one line if it fits, else each of its lines breaks. Two things
are of our own. A comment is part of the token beside it and never moves: a ``--`` comment ends its line whatever the
layout says. And a group knows without a look inside whether it must break: long chains cost no more than their length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

INDENT = 4


class Doc:
    """A piece of layout.

    ``hard``: a line must break inside, so that no group around it is flat. ``starts``: it begins with a comment that
    stands on a line of its own. ``ends``: it ends with a comment that ends its line. Neither breaks the piece itself.
    """

    __slots__ = ("ends", "hard", "starts")

    def __init__(self, hard: bool = False, starts: bool = False, ends: bool = False) -> None:
        self.hard = hard
        self.starts = starts
        self.ends = ends


class Text(Doc):
    """Characters as they are; strings and bodies of functions may span lines."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class Line(Doc):
    """A blank, or nothing, where its group is flat; else a line's end. ``hard``: always a line's end."""

    __slots__ = ("flat",)

    def __init__(self, flat: str, hard: bool = False) -> None:
        super().__init__(hard)
        self.flat = flat


class Note(Doc):
    """A comment. ``own``: on a line of its own, at its start at least. ``last``: nothing follows in its line.

    ``blank``: an empty line stands before it.
    """

    __slots__ = ("blank", "last", "own", "text")

    def __init__(self, text: str, own: bool, last: bool, blank: bool) -> None:
        super().__init__(starts=own, ends=last)
        self.text = text
        self.own = own
        self.last = last
        self.blank = blank


class Blank(Doc):
    """An empty line, if lines break here."""

    __slots__ = ()


class Space(Doc):
    """A blank between two texts; none at a line's end or start."""

    __slots__ = ()


class Cat(Doc):
    """One behind the other. ``noted``: a token with its comments, which do not break it."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Doc], noted: bool = False) -> None:
        self.parts = parts
        solid = [part for part in parts if not isinstance(part, (Space, Blank))]
        super().__init__(
            not noted
            and (
                any(part.hard for part in solid)
                or any(part.starts for part in solid[1:])
                or any(part.ends for part in solid[:-1])
            ),
            bool(solid) and solid[0].starts,
            bool(solid) and solid[-1].ends,
        )


class Indent(Doc):
    """Lines that break inside go further in."""

    __slots__ = ("inner",)

    def __init__(self, inner: Doc) -> None:
        super().__init__(inner.hard, inner.starts, inner.ends)
        self.inner = inner


class Group(Doc):
    """On one line if it fits, else all its own lines break. ``broken``: they break in any case."""

    __slots__ = ("inner",)

    def __init__(self, inner: Doc, broken: bool = False) -> None:
        super().__init__(inner.hard or broken, inner.starts, inner.ends)
        self.inner = inner


SPACE = Space()
BLANK = Blank()
LINE = Line(" ")
SOFT = Line("")
HARD = Line("", hard=True)


def cat(*parts: Doc | None) -> Doc:
    """The parts that are there."""
    return Cat([part for part in parts if part is not None])


def filled(items: Sequence[Doc]) -> Doc:
    """As many items on each line as fit; each bears its comma."""
    return spaced(items, Group(LINE))


def spaced(parts: Iterable[Doc | None], between: Doc = SPACE) -> Doc:
    """The parts that are there, with something between."""
    found: list[Doc] = []
    for part in parts:
        if part is not None:
            found += [between, part] if found else [part]
    return Cat(found)


#: No blank stands before these, whatever does.
_TIGHT = frozenset((",", ";", ")", "]"))

_Command = tuple[int, bool, Doc]


class Renderer:
    """Writes one document."""

    def __init__(self, width: int) -> None:
        """``width``: columns that lines should not exceed."""
        self._width = width
        self._out: list[str] = []
        self._column = 0
        # Nothing stands in this line yet; a blank, a line's end or an empty line is due before the next text.
        self._fresh = True
        self._space = False
        self._break = False
        self._blank = False

    def render(self, doc: Doc) -> str:
        """The text, without a line's end behind it."""
        stack: list[_Command] = [(0, False, doc)]
        while stack:
            indent, flat, at = stack.pop()
            if isinstance(at, Text):
                self._write(at.text, indent)
            elif isinstance(at, Cat):
                stack.extend((indent, flat, part) for part in reversed(at.parts))
            elif isinstance(at, Indent):
                stack.append((indent + INDENT, flat, at.inner))
            elif isinstance(at, Group):
                fits = flat or (not at.hard and self._fits((indent, True, at.inner), stack))
                stack.append((indent, fits, at.inner))
            elif isinstance(at, Line):
                if flat and not at.hard:
                    self._space = self._space or bool(at.flat)
                else:
                    self._newline()
            elif isinstance(at, Note):
                self._note(at, indent)
            elif isinstance(at, Space):
                self._space = True
            elif isinstance(at, Blank):
                self._blank = self._blank or self._fresh or self._break
        return "".join(self._out)

    def _write(self, text: str, indent: int) -> None:
        if not text:
            return
        if self._break:
            self._newline()
        if self._fresh:
            if self._blank and self._out:
                self._out.append("\n")
            self._out.append(" " * indent)
            self._column = indent
        elif self._space and self._out[-1][-1:] not in ("(", "[") and text not in _TIGHT:
            self._out.append(" ")
            self._column += 1
        self._space = self._fresh = self._blank = False
        self._out.append(text)
        tail = text.rfind("\n")
        self._column = self._column + len(text) if tail < 0 else len(text) - tail - 1

    def _newline(self) -> None:
        if not self._fresh:
            self._out.append("\n")
        self._fresh = True
        self._space = self._break = False
        self._column = 0

    def _note(self, note: Note, indent: int) -> None:
        if note.own:
            self._newline()
            self._blank = self._blank or (note.blank and not self._opened())
        elif note.last and not self._fresh and not self._break:
            # Behind an opening bracket, too.
            self._out.append(" ")
        self._space = not note.last or note.own
        self._write(note.text, indent)
        self._break = note.last
        self._space = True

    def _opened(self) -> bool:
        """Whether the line before this one ends with what was opened, behind which no empty line stands."""
        return len(self._out) > 1 and self._out[-2][-1:] in ("(", "<", "[")

    def _fits(self, first: _Command, rest: list[_Command]) -> bool:
        """Whether the command fits flat into what is left of the line, with what follows up to the next line's end."""
        indent = first[0]
        left = self._width - (indent if self._fresh or self._break or first[2].starts else self._column)
        if self._space and not self._fresh:
            left -= 1
        stack = [first]
        below = len(rest)
        seen = False
        while left >= 0:
            if not stack:
                if not below:
                    return True
                below -= 1
                stack.append(rest[below])
            indent, flat, at = stack.pop()
            if isinstance(at, Text):
                head, newline, _ = at.text.partition("\n")
                left -= len(head)
                seen = seen or bool(head)
                if newline:
                    return left >= 0
            elif isinstance(at, Cat):
                stack.extend((indent, flat, part) for part in reversed(at.parts))
            elif isinstance(at, (Indent, Group)):
                stack.append((indent, flat and not (isinstance(at, Group) and at.hard), at.inner))
            elif isinstance(at, Line):
                if at.hard or not flat:
                    return True
                left -= len(at.flat)
            elif isinstance(at, Space):
                left -= 1
            elif isinstance(at, Note):
                if at.own and not seen:
                    continue
                if at.own or at.last:
                    # Long comments do not break code.
                    return left >= 0
                left -= len(at.text) + 1
        return False
