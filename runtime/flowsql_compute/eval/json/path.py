"""JSON paths of JSON_VALUE, JSON_QUERY and JSON_EXISTS: compiled once, applied to parsed documents.

``[lax|strict] $.a['b'][0][-1][1:3][*]..name[?(@.price > 10)].length()``; without a mode a path is strict. A *definite*
path names one place; any other one gives the list of what it finds.

Source: the grammar of Jayway JsonPath, which Flink documents for these functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from flowsql_compute.eval.json.document import json_text
from flowsql_compute.eval.json.path_filter import Filter, parse_filter
from flowsql_compute.eval.json.path_functions import PATH_FUNCTIONS
from flowsql_core.record import record

_MODE: Final = re.compile(r"\s*(strict|lax)\s+(.+)$", re.IGNORECASE | re.DOTALL)
_NAME_END: Final = frozenset(".[( ")


class PathNotFoundError(LookupError):
    """A definite path that leads nowhere."""


class _StepNotFoundError(PathNotFoundError):
    """The step at which a path ended, put into words only if somebody reads them: most paths may miss."""

    def __init__(self, value: Any, steps: tuple[str | int, ...], at: int) -> None:
        super().__init__()
        self._missed = (value, steps, at)

    def __str__(self) -> str:
        return _nothing_at(*self._missed)


class BadPathError(ValueError):
    """A path that does not parse."""


@record
class Name:
    """``.a``, ``['a']``, ``['a','b']``."""

    names: tuple[str, ...]


@record
class Index:
    """``[0]``, ``[-1]``, ``[0,2]``."""

    places: tuple[int, ...]


@record
class Slice:
    """``[1:3]``."""

    start: int | None
    stop: int | None


@record
class Every:
    """``[*]``, ``.*``."""


@record
class Deep:
    """``..``: what follows, applied at every depth."""


@record
class Where:
    """``[?(...)]``."""

    condition: Filter


@record
class Function:
    """``.length()`` and its like, at the end of a path."""

    name: str
    arguments: tuple[Any, ...]


Step = Name | Index | Slice | Every | Deep | Where | Function


@record
class JsonPath:
    """A compiled path. ``definite``: it names one place."""

    steps: tuple[Step, ...]
    definite: bool
    #: Keys and indexes of a path of nothing else: the quick way.
    plain: tuple[str | int, ...] | None

    def read(self, root: Any) -> Any:
        """The value at the place, or the list of values of an indefinite path.

        Raises:
            PathNotFoundError: a definite path leads nowhere.
        """
        if self.plain is not None:
            return _read_plain(root, self.plain)
        found = list(_walk(root, root, self.steps, 0, True))
        if not self.definite:
            return found
        if not found:
            raise PathNotFoundError("No results for path")
        return found[-1]


@record
class ModePath:
    """A path as written in SQL: the mode, and the path or why it does not parse."""

    lax: bool
    path: JsonPath | None
    problem: str


def _read_plain(value: Any, steps: tuple[str | int, ...]) -> Any:
    for at, step in enumerate(steps):
        try:
            # A text has indexes too, and an integer index of a dict is no key.
            if (isinstance(value, dict) and isinstance(step, str)) or (
                isinstance(value, list) and isinstance(step, int)
            ):
                found: Any = value
                value = found[step]
                continue
        except (KeyError, IndexError):
            pass
        raise _StepNotFoundError(value, steps, at)
    return value


def _nothing_at(value: Any, steps: tuple[str | int, ...], at: int) -> str:
    """Why the step at ``at`` leads nowhere from ``value``, in the words of Flink's JSON library."""
    step = steps[at]
    if isinstance(step, int):
        if isinstance(value, list):
            return f"No results for path: {_written(steps)}"
        context = value if isinstance(value, str) else json_text(value)
        return f"Filter: [{step}] can only be applied to arrays. Current context is: {context}"
    if isinstance(value, dict):
        what = "No results for path:" if at == len(steps) - 1 else "Missing property in path"
        return f"{what} {_written(steps[: at + 1])}"
    found = _JAVA_NAMES.get(type(value), "null")
    return f"Expected to find an object with property ['{step}'] in path {_written(steps[:at])} but found '{found}'."


_JAVA_NAMES: Final = {
    list: "java.util.ArrayList",
    str: "java.lang.String",
    bool: "java.lang.Boolean",
    int: "java.lang.Integer",
    float: "java.lang.Double",
}


def _written(steps: tuple[str | int, ...]) -> str:
    return "$" + "".join(f"['{step}']" if isinstance(step, str) else f"[{step}]" for step in steps)


def _walk(root: Any, value: Any, steps: tuple[Step, ...], at: int, sure: bool) -> Iterator[Any]:
    """Values that the steps from ``at`` on reach; ``sure``: only definite steps stand before."""
    if at == len(steps):
        yield value
        return
    match steps[at]:
        case Name(names):
            yield from _walk_names(root, value, steps, at, sure, names)
        case Index(places):
            if not isinstance(value, list):
                _miss(sure)
                return
            for place in places:
                if -len(value) <= place < len(value):
                    yield from _walk(root, value[place], steps, at + 1, sure and len(places) == 1)
        case Slice(start, stop):
            if not isinstance(value, list):
                _miss(sure)
                return
            for item in value[start:stop]:
                yield from _walk(root, item, steps, at + 1, False)
        case Every():
            for item in _items(value):
                yield from _walk(root, item, steps, at + 1, False)
        case Where(condition):
            yield from _walk_filter(root, value, steps, at, sure, condition)
        case Deep():
            yield from _walk_deep(root, value, steps, at + 1)
        case Function(name, arguments):
            yield PATH_FUNCTIONS[name](value, *_values_of(arguments, root))


def _values_of(arguments: tuple[Any, ...], root: Any) -> Iterator[Any]:
    """The arguments of a function: constants, and what paths find, arrays taken apart."""
    for argument in arguments:
        found = argument.read(root) if isinstance(argument, JsonPath) else argument
        yield from found if isinstance(found, list) else (found,)


def _miss(sure: bool) -> None:
    if sure:
        raise PathNotFoundError("the path leads into a value that has no such part")


def _walk_names(
    root: Any, value: Any, steps: tuple[Step, ...], at: int, sure: bool, names: tuple[str, ...]
) -> Iterator[Any]:
    if not isinstance(value, dict):
        _miss(sure)
        return
    if len(names) == 1:
        if names[0] in value:
            yield from _walk(root, value[names[0]], steps, at + 1, sure)
        else:
            _miss(sure)
    elif at + 1 == len(steps):
        # Several names at the end make one object of what is there.
        yield {name: value[name] for name in names if name in value}
    else:
        for name in names:
            if name in value:
                yield from _walk(root, value[name], steps, at + 1, False)


def _walk_filter(
    root: Any, value: Any, steps: tuple[Step, ...], at: int, sure: bool, condition: Filter
) -> Iterator[Any]:
    match value:
        case dict():
            if condition(value, root):
                yield from _walk(root, value, steps, at + 1, False)
        case list():
            for item in value:
                if condition(item, root):
                    yield from _walk(root, item, steps, at + 1, False)
        case _:
            _miss(sure)


def _items(value: Any) -> list[Any]:
    match value:
        case dict():
            return list(value.values())
        case list():
            return value
    return []


def _walk_deep(root: Any, value: Any, steps: tuple[Step, ...], at: int) -> Iterator[Any]:
    """The step at ``at`` on this value and on every value below it, outer ones first."""
    step = steps[at]
    match step:
        case Name(names):
            fits = isinstance(value, dict) and all(name in value for name in names)
        case Index() | Slice():
            fits = isinstance(value, list)
        case Where(condition):
            fits = isinstance(value, dict) and condition(value, root)
        case _:
            fits = True
    if fits:
        yield from _walk(root, value, steps, at, False)
    for item in _items(value):
        if isinstance(item, dict | list):
            yield from _walk_deep(root, item, steps, at)


# Parsing


@lru_cache(maxsize=4096)
def mode_path(text: str) -> ModePath:
    """The path that a SQL text means; never raises."""
    found = _MODE.match(text)
    lax = found is not None and found[1].lower() == "lax"
    path = text if found is None else found[2]
    # What does not begin with the root is a name below it, even a blank.
    path = f"$.{path}" if path[:1].isspace() and path.strip() else path
    try:
        return ModePath(lax, parse_path(path), "")
    except BadPathError as error:
        return ModePath(lax, None, str(error))


def parse_path(text: str) -> JsonPath:
    """The compiled path.

    Raises:
        BadPathError: it does not parse.
    """
    text = text.strip()
    if not text:
        raise BadPathError("path can not be null or empty")
    if text[0] not in "$@":
        text = f"$.{text}"
    parser = _Parser(text)
    steps = tuple(parser.steps())
    last = steps[-1] if steps else None
    # Several names make one object at the end of a path.
    definite = all(_is_definite(step) or (step is last and isinstance(step, Name)) for step in steps)
    plain = tuple(_plain(step) for step in steps) if definite else (None,)
    known = tuple(step for step in plain if step is not None)
    return JsonPath(steps, definite, known if len(known) == len(plain) else None)


def _is_definite(step: Step) -> bool:
    match step:
        case Name(names):
            return len(names) == 1
        case Index(places):
            return len(places) == 1
        case Function():
            return True
    return False


def _plain(step: Step) -> str | int | None:
    match step:
        case Name(names=(name,)):
            return name
        case Index(places=(place,)):
            return place
    return None


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1

    def steps(self) -> Iterator[Step]:
        text = self.text
        if len(text) > 1 and text[1] not in ".[":
            raise BadPathError("Illegal character at position 1 expected '.' or '['")
        while self.at < len(text):
            if text[self.at] == "[":
                yield self._bracket()
            elif text.startswith("..", self.at):
                if text.startswith("...", self.at) or self.at + 2 >= len(text):
                    raise BadPathError("Path must not end with a '.' or '..'")
                yield Deep()
                self.at += 2
                if text[self.at] != "[":
                    yield self._dotted()
            elif text[self.at] == ".":
                self.at += 1
                if self.at >= len(text):
                    raise BadPathError("Path must not end with a '.' or '..'")
                yield self._dotted()
            else:
                raise BadPathError(f"Could not parse token starting at position {self.at}")

    def _dotted(self) -> Step:
        text, start = self.text, self.at
        if text[start] == "*":
            self.at += 1
            return Every()
        if text[start] == "[":
            return self._bracket()
        while self.at < len(text) and text[self.at] not in _NAME_END:
            self.at += 1
        name = text[start : self.at]
        if self.at < len(text) and text[self.at] == " ":
            raise BadPathError("Use bracket notion ['my prop'] if your property contains blank characters")
        if self.at < len(text) and text[self.at] == "(":
            return self._function(name)
        if not name:
            raise BadPathError(f"Could not parse token starting at position {start}")
        return Name((name,))

    def _function(self, name: str) -> Function:
        end = self.text.find(")", self.at)
        if name not in PATH_FUNCTIONS:
            raise BadPathError(f"Function of name: {name} cannot be created")
        if end != len(self.text) - 1:
            raise BadPathError(f"Arguments to function: '{name}' are not closed properly.")
        inner = self.text[self.at + 1 : end].strip()
        self.at = end + 1
        try:
            arguments = tuple(_argument(part.strip()) for part in inner.split(",")) if inner else ()
        except ValueError:
            raise BadPathError(f"bad argument of function '{name}'") from None
        return Function(name, arguments)

    def _bracket(self) -> Step:
        text = self.text
        self.at += 1
        self._skip()
        head = text[self.at : self.at + 1]
        if head == "?":
            return self._filter()
        if head == "*":
            self.at += 1
            self._close()
            return Every()
        if head and head in "'\"":
            return self._names()
        end = text.find("]", self.at)
        if end < 0:
            raise BadPathError("Could not parse token")
        inner = text[self.at : end]
        self.at = end + 1
        return _places(inner)

    def _names(self) -> Name:
        names = []
        while True:
            quote = self.text[self.at : self.at + 1]
            if not quote or quote not in "'\"":
                raise BadPathError("Property must be separated by comma")
            end = self.at + 1
            made = []
            while end < len(self.text) and self.text[end] != quote:
                if self.text[end] == "\\":
                    end += 1
                made.append(self.text[end : end + 1])
                end += 1
            if end >= len(self.text):
                raise BadPathError(f"Property has not been closed - missing closing {quote}")
            names.append("".join(made))
            self.at = end + 1
            self._skip()
            if self.text[self.at : self.at + 1] != ",":
                break
            self.at += 1
            self._skip()
        self._close()
        return Name(tuple(names))

    def _filter(self) -> Where:
        start = self.text.find("(", self.at)
        if start < 0 or self.text[self.at + 1 : start].strip():
            raise BadPathError("Could not parse token: a filter is written [?(...)]")
        try:
            condition, self.at = parse_filter(self.text, start, parse_path)
        except (ValueError, IndexError) as error:
            raise BadPathError(f"Failed to parse filter: {error}") from None
        self._close()
        return Where(condition)

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1

    def _close(self) -> None:
        self._skip()
        if self.text[self.at : self.at + 1] != "]":
            raise BadPathError(f"Expected ']' at position {self.at}")
        self.at += 1


def _places(inner: str) -> Step:
    try:
        if ":" in inner:
            parts = [part.strip() for part in inner.split(":")]
            if not any(parts[:2]):
                raise ValueError(inner)
            # What stands behind a second colon has no effect.
            start, stop = (int(part) if part else None for part in parts[:2])
            return Slice(start, stop)
        return Index(tuple(int(part.strip()) for part in inner.split(",")))
    except ValueError:
        raise BadPathError(f"Could not parse token [{inner}]") from None


def _argument(text: str) -> Any:
    if text[:1] == "$":
        return parse_path(text)
    if text[:1] in "'\"" and text[-1:] == text[:1] and len(text) > 1:
        return text[1:-1]
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
