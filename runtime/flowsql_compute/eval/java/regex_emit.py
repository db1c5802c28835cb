"""Trees of Java patterns as patterns of RE2, and of the package ``regex``."""

from __future__ import annotations

from typing import Final

from flowsql_compute.eval.java.code_points import CodePoints, for_re2, for_regex
from flowsql_compute.eval.java.regex_class import word_letters
from flowsql_compute.eval.java.regex_parse import (
    Atomic,
    Cluster,
    Either,
    Group,
    Look,
    Many,
    Node,
    One,
    Place,
    Repeat,
    Same,
    all_nodes,
    may_be_empty,
)
from flowsql_core.errors import NotSupportedYetError

#: RE2 refuses more repetitions.
_MOST_RE2: Final = 1000
_LINE_END_RE2: Final = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])"


def to_re2(node: Node, plain: bool, existence: bool) -> str | None:
    """Return the pattern of RE2 that finds the same matches, or None where it cannot say it.

    Args:
        plain: it is asked of ASCII texts without ends of lines only.
        existence: only whether there is a match counts, not where it ends.
    """
    try:
        return _Re2(plain).emit(node, existence)
    except _CannotSayError:
        return None


class _CannotSayError(Exception):
    pass


class _Re2:
    def __init__(self, plain: bool) -> None:
        self.plain = plain

    def emit(self, node: Node, last: bool) -> str:
        """``last``: nothing comes behind the node, and where the match ends does not count."""
        match node:
            case One(members=members):
                text = for_re2(members)
                if text is None:
                    # Nothing that a text can hold.
                    raise _CannotSayError
                return text
            case Many(nodes=nodes):
                end = len(nodes) - 1
                return "".join(self.emit(inner, last and place == end) for place, inner in enumerate(nodes))
            case Either(nodes=nodes):
                return "(?:" + "|".join(self.emit(inner, last) for inner in nodes) + ")"
            case Group(node=inner):
                return f"({self.emit(inner, last)})"
            case Repeat(node=inner, low=low, high=high, kind=kind):
                if kind == "+" or max(low, high or 0) > _MOST_RE2:
                    raise _CannotSayError
                return _repeated(self.emit(inner, False), isinstance(inner, One | Group), low, high, kind)
            case Place():
                return self._place(node, last)
            case Cluster(letter="R"):
                return r"(?:\r\n|[\n-\r\x{85}\x{2028}\x{2029}])"
        raise _CannotSayError

    def _place(self, node: Place, last: bool) -> str:
        match node.kind:
            case "begin":
                return r"\A"
            case "end":
                return r"\z"
            case "last" | "line_end" if self.plain:
                return r"\z"
            case "last" if last:
                return (r"\n" if node.flags.unix_lines else _LINE_END_RE2) + r"?\z"
            case "bound" | "inner" if self.plain:
                return r"\b" if node.kind == "bound" else r"\B"
        raise _CannotSayError


def has_same_extent(node: Node) -> bool:
    """True if RE2 finds matches that end where Java's end: Java has its own way with what is repeated and empty."""
    return not any(isinstance(inner, Repeat) and may_be_empty(inner.node) for inner in all_nodes(node))


def is_free(node: Node) -> bool:
    """True if what follows a match can be searched on its own: no match is empty, and none looks around itself."""
    return not may_be_empty(node) and not any(isinstance(inner, Place | Look | Same) for inner in all_nodes(node))


def optional_groups(node: Node) -> frozenset[int]:
    """Groups that may be unset in a match, where RE2 says ''."""
    match node:
        case Either(nodes=nodes):
            return frozenset(number for inner in nodes for number in groups_of(inner))
        case Repeat(node=inner, low=0):
            return groups_of(inner)
        case Many(nodes=nodes):
            return frozenset[int]().union(*map(optional_groups, nodes))
        case Repeat(node=inner) | Group(node=inner) | Look(node=inner) | Atomic(node=inner):
            return optional_groups(inner)
    return frozenset()


def groups_of(node: Node) -> frozenset[int]:
    """The numbers of all groups in a node."""
    return frozenset(inner.number for inner in all_nodes(node) if isinstance(inner, Group))


def _repeated(inner: str, is_atom: bool, low: int, high: int | None, kind: str) -> str:
    times = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((low, high))
    if times is None:
        times = f"{{{low}}}" if high == low else f"{{{low},{'' if high is None else high}}}"
    return f"{inner if is_atom else f'(?:{inner})'}{times}{kind}"


# The package regex, and Python's own


def to_regex(node: Node) -> str:
    """Return the pattern of the package ``regex``; it needs no flags."""
    return _Regex().emit(node)


def to_ascii_python(node: Node) -> str | None:
    """Return the pattern of Python's ``re`` for ASCII texts, by its flag ASCII; None where it cannot say it."""
    try:
        return _AsciiPython().emit(node)
    except _CannotSayError:
        return None


def longest_text(node: Node, most_steps: int) -> int:
    """Return how long a text may be so that no search by going back and forth takes more steps; 0: any may."""
    try:
        factor, degree = _ways(node)
    except _CannotSayError:
        return 0
    size = sum(1 for _ in all_nodes(node))
    # From each place of the text on, all ways.
    return int((most_steps / (factor * size)) ** (1 / (degree + 1)))


def _ways(node: Node) -> tuple[int, int]:
    """In how many ways a node can match from one place on: a factor, and how often the length of the text counts.

    Raises:
        _CannotSayError: there may be more than that, as of repetitions in repetitions.
    """
    match node:
        case Many(nodes=nodes) | Either(nodes=nodes):
            factor, degree = (1, 0) if isinstance(node, Many) else (0, 0)
            for inner in nodes:
                more, deeper = _ways(inner)
                factor = factor * more if isinstance(node, Many) else factor + more
                degree = degree + deeper if isinstance(node, Many) else max(degree, deeper)
                if factor > _MOST_FACTOR:
                    raise _CannotSayError
            return max(factor, 1), degree
        case Repeat(node=inner, low=low, high=high):
            if not isinstance(inner, One):
                if high is not None and high <= 1:
                    more, deeper = _ways(inner)
                    return more + 1, deeper
                raise _CannotSayError
            if high is None:
                return 1, 1
            return min(high - low + 1, _MOST_FACTOR + 1) + min(high, _MOST_FACTOR), 0
        case Group(node=inner) | Look(node=inner) | Atomic(node=inner):
            return _ways(inner)
        case Same():
            return 1, 1
        case Cluster():
            raise _CannotSayError
    return 1, 0


_MOST_FACTOR: Final = 10_000
#: Java stops before the ``\\n`` of ``\\r\\n`` nowhere.
_LAST: Final = {
    False: r"(?:\Z|(?=(?:\r\n|[\r\x85\u2028\u2029])\Z)|(?<!\r)(?=\n\Z))",
    True: r"(?=\n?\Z)",
}
_LINE_END: Final = {False: r"(?:\Z|(?=[\r\x85\u2028\u2029])|(?<!\r)(?=\n))", True: r"(?:\Z|(?=\n))"}
#: A line that begins at the end of the text is none.
_LINE: Final = {
    False: r"(?=(?s:.))(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n))",
    True: r"(?=(?s:.))(?:\A|(?<=\n))",
}
_NEVER: Final = "(?!)"


class _Regex:
    def __init__(self) -> None:
        self.open: list[int] = []
        self.closed: set[int] = set()

    def emit(self, node: Node) -> str:
        """The pattern of a node."""
        match node:
            case One(members=members):
                return self._one(members) if members.ranges else _NEVER
            case Many(nodes=nodes):
                return "".join(map(self.emit, nodes))
            case Either(nodes=nodes):
                return "(?:" + "|".join(map(self.emit, nodes)) + ")"
            case Group(number=number, node=inner):
                self.open.append(number)
                text = f"({self.emit(inner)})"
                self.open.pop()
                self.closed.add(number)
                return text
            case Repeat(node=inner, low=low, high=high, kind=kind):
                return _repeated(self.emit(inner), isinstance(inner, One | Group), low, high, kind)
            case Look():
                return self._look(node)
            case Atomic(node=inner):
                return f"(?>{self.emit(inner)})"
            case Place():
                return self._place(node)
            case Same(number=number, flags=flags):
                return self._same(number, flags.ignore_case)
            case Cluster(letter="X"):
                return self._cluster()
            case Cluster():
                return r"(?:\r\n|[\n-\r\x85\u2028\u2029])"

    def _one(self, members: CodePoints) -> str:
        return for_regex(members)

    def _cluster(self) -> str:
        return r"\X"

    def _look(self, node: Look) -> str:
        return f"(?{'' if node.ahead else '<'}{'!' if node.negated else '='}{self.emit(node.node)})"

    def _same(self, number: int, ignore_case: bool) -> str:
        if number in self.open or number not in self.closed:
            return _NEVER
        return f"(?{'i' if ignore_case else ''}:\\{number})"

    def _place(self, node: Place) -> str:
        unix = node.flags.unix_lines
        match node.kind:
            case "begin":
                return r"\A"
            case "end":
                return r"\Z"
            case "next":
                return r"\G"
            case "last":
                return _LAST[unix]
            case "line_end":
                return _LINE_END[unix]
            case "line":
                return _LINE[unix]
            case "bound" | "inner":
                return self._bound(node)

    def _bound(self, node: Place) -> str:
        letters = for_regex(word_letters(node.flags)) if node.flags.unicode else r"[\p{L}\p{Nd}_]"
        # A mark belongs to the letter before it.
        base = r"[\p{L}\p{Nd}]"
        before = f"{letters}|{base}\\p{{Mn}}+"
        after = f"{letters}|(?<={base}\\p{{Mn}}*)\\p{{Mn}}"
        if node.kind == "bound":
            return f"(?:(?<={before})(?!{after})|(?<!{before})(?={after}))"
        return f"(?:(?<={before})(?={after})|(?<!{before})(?!{after}))"


class _AsciiPython(_Regex):
    def _one(self, members: CodePoints) -> str:
        known = members & _ASCII
        if not known.ranges:
            return _NEVER
        # Beyond ASCII there is nothing to match: what takes all of it need not be listed.
        return for_regex(known | _BEYOND if ~members & _BEYOND != _BEYOND else known)

    def _cluster(self) -> str:
        raise _CannotSayError

    def _look(self, node: Look) -> str:
        if not node.ahead and _width(node.node) is None:
            raise _CannotSayError
        return super()._look(node)

    def _place(self, node: Place) -> str:
        if node.kind == "next":
            raise _CannotSayError
        return super()._place(node)

    def _bound(self, node: Place) -> str:
        # Python's \\B has no match in the empty text.
        return r"\b" if node.kind == "bound" else r"(?!\b)"


_ASCII: Final = CodePoints(((0, 127),))
_BEYOND: Final = ~_ASCII


def _width(node: Node) -> int | None:
    """How many characters a node takes; None: it depends."""
    match node:
        case One():
            return 1
        case Many(nodes=nodes):
            widths = [_width(inner) for inner in nodes]
            return None if None in widths else sum(width for width in widths if width is not None)
        case Either(nodes=nodes):
            each = {_width(inner) for inner in nodes}
            return each.pop() if len(each) == 1 else None
        case Repeat(node=inner, low=low, high=high):
            width = _width(inner)
            return None if width is None or low != high else width * low
        case Group(node=inner) | Atomic(node=inner):
            return _width(inner)
        case Place() | Look():
            return 0
    return None


def check(node: Node) -> None:
    """Refuse what Java refuses in whole trees, and what is not known here.

    Raises:
        ValueError: a look-behind has no obvious bound.
        NotSupportedYetError: a reference comes before its group, which a repetition may have set.
    """
    seen: set[int] = set()
    every = groups_of(node)
    for inner in all_nodes(node):
        match inner:
            case Group(number=number):
                seen.add(number)
            case Same(number=number) if number not in seen and number in every:
                raise NotSupportedYetError("a reference to a later group in a regular expression")
            case Look(ahead=False, node=before) if not _is_bounded(before):
                raise ValueError("a look-behind without an obvious bound")


def _is_bounded(node: Node) -> bool:
    """True if Java sees at once how far back a look-behind has to go."""
    for inner in all_nodes(node):
        if isinstance(inner, Same) or (isinstance(inner, Cluster) and inner.letter == "X"):
            return False
        # Of one character, repeated as often as can be, Java knows a bound: the longest text there is.
        if isinstance(inner, Repeat) and inner.high is None and (inner.kind or not isinstance(inner.node, One)):
            return False
    return True
