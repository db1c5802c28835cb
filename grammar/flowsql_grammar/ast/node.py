"""What every AST node is: frozen, slotted, compared by content without its place in the text.

Nodes are written like dataclasses and behave like frozen, slotted ones (``dataclasses.fields`` and ``replace`` work),
but the class machinery here compiles an ``__init__`` only when a class is often used: the decorator of the standard
library costs about 1 ms a class, and an ordinary statement uses a tenth of the classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, TypeVar, cast, dataclass_transform

from flowsql_core.span import Span

T = TypeVar("T")

NOWHERE = Span(0, 0)
"""The span of a node that no text stands behind, for example one built by the Table API."""


class _Missing:
    """The default of a field that has none."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Detail:
    """A field that is given by keyword, or does not take part in comparison."""

    default: object


def detail(*, default: T, kw_only: Literal[True]) -> T:
    """A field that comparison, hash and representation leave out: a place, a way of writing. Given by keyword."""
    del kw_only  # read by type checkers alone
    return cast(T, _Detail(default))


@dataclasses.dataclass(slots=True)
class _Layout:
    """The fields of one node class: name to default; details apart. ``made`` counts its first instances."""

    fields: dict[str, object]
    details: dict[str, object]
    types: dict[str, str]
    made: int = 0


class _DataclassFields:
    """``__dataclass_fields__``, made when somebody asks."""

    def __get__(self, node: object, owner: NodeType) -> dict[str, dataclasses.Field[Any]]:
        made: dict[str, dataclasses.Field[Any]] = {}
        layout = owner.layout
        for name, default in {**layout.fields, **layout.details}.items():
            is_detail = name in layout.details
            value = dataclasses.MISSING if default is _Missing else default
            made_field: Any = dataclasses.field(
                default=value, compare=not is_detail, repr=not is_detail, kw_only=is_detail
            )
            made_field.name, made_field.type = name, layout.types[name]
            made_field._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
            made[name] = made_field
        return made


@dataclass_transform(frozen_default=True, field_specifiers=(detail,))
class NodeType(type):
    """Makes a frozen, slotted class out of annotated fields."""

    layout: _Layout

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> NodeType:
        """Read the annotations of the class body; bases' fields come first."""
        layout = _Layout({}, {}, {})
        for base in bases:
            if isinstance(base, NodeType):
                layout.fields |= base.layout.fields
                layout.details |= base.layout.details
                layout.types |= base.layout.types
        own = {k: v for k, v in namespace.get("__annotations__", {}).items() if not v.startswith("ClassVar")}
        for field_name, type_text in own.items():
            default = namespace.pop(field_name, _Missing)
            if isinstance(default, _Detail):
                layout.details[field_name] = default.default
            else:
                layout.fields[field_name] = default
            layout.types[field_name] = type_text
        namespace["__slots__"] = tuple(own)
        namespace["__match_args__"] = tuple(layout.fields)
        namespace["__init__"] = _first_init
        made = super().__new__(mcs, name, bases, namespace)
        made.layout = layout
        return made


def _first_init(self: Node, *args: object, **kwargs: object) -> None:
    """Stands as ``__init__`` until a class has had some instances: compiling one takes as long as making a hundred."""
    cls = type(self)
    layout = cls.layout
    layout.made += 1
    if layout.made > _INTERPRETED:
        init = _compile_init(cls)
        cls.__init__ = init  # type: ignore[method-assign]
        init(self, *args, **kwargs)
        return
    names = tuple(layout.fields)
    values = dict(zip(names, args, strict=False))
    if len(args) > len(names) or values.keys() & kwargs.keys() or not kwargs.keys() <= layout.types.keys():
        # The compiled one knows what to say.
        _compile_init(cls)(self, *args, **kwargs)
    for name, default in layout.fields.items():
        value = values[name] if name in values else kwargs.get(name, default)
        if value is _Missing:
            _compile_init(cls)(self, *args, **kwargs)
        object.__setattr__(self, name, value)
    for name, default in layout.details.items():
        object.__setattr__(self, name, kwargs.get(name, default))


_INTERPRETED = 40


def _compile_init(cls: NodeType) -> Callable[..., None]:
    layout = cls.layout
    scope: dict[str, Any] = {}
    parameters: list[str] = []
    body: list[str] = []
    for group in (layout.fields, layout.details):
        if group is layout.details and group:
            parameters.append("*")
        for name, default in group.items():
            scope[f"set_{name}"] = getattr(cls, name).__set__
            scope[f"default_{name}"] = default
            parameters.append(name if default is _Missing else f"{name}=default_{name}")
            body.append(f"    set_{name}(self, {name})")
    exec(f"def __init__(self, {', '.join(parameters)}):\n" + "\n".join(body or ["    pass"]), scope)
    made = cast(Callable[..., None], scope["__init__"])
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


class Node(metaclass=NodeType):
    """A piece of a statement.

    ``span`` is the place it was read from. It is given by keyword and does not take part in comparison, so that two
    texts that mean the same compare equal.
    """

    __dataclass_fields__: ClassVar[_DataclassFields] = _DataclassFields()

    span: Span = detail(default=NOWHERE, kw_only=True)

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def _content(self) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in type(self).layout.fields])

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        # Without calls of its own: a chain of thousands of operators is as deep as it is long.
        waiting: list[tuple[object, object]] = [(self, other)]
        while waiting:
            left, right = waiting.pop()
            if type(left) is not type(right):
                return False
            if isinstance(left, Node) and isinstance(right, Node):
                waiting.extend(zip(left._content(), right._content(), strict=True))
            elif isinstance(left, tuple) and isinstance(right, tuple):
                if len(left) != len(right):
                    return False
                waiting.extend(zip(left, right, strict=True))
            elif left != right:
                return False
        return True

    def __hash__(self) -> int:
        return hash((type(self), self._content()))

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).layout.fields)
        return f"{type(self).__name__}({inner})"

    def __reduce__(self) -> tuple[object, ...]:
        layout = type(self).layout
        return _rebuild, (type(self), {name: getattr(self, name) for name in (*layout.fields, *layout.details)})

    def __replace__(self, **changes: object) -> Node:
        layout = type(self).layout
        kept = {name: getattr(self, name) for name in (*layout.fields, *layout.details)}
        return type(self)(**(kept | changes))

    def children(self) -> Iterator[Node]:
        """The nodes right below this one, in the order of the fields (which is mostly that of the text)."""
        for name in type(self).layout.fields:
            value = getattr(self, name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                yield from _nodes_in(value)

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first. Needs no call stack of the tree's depth."""
        waiting: list[Node] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(list(node.children())))


def _nodes_in(values: tuple[object, ...]) -> Iterator[Node]:
    for value in values:
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from _nodes_in(value)


def _rebuild(cls: NodeType, values: dict[str, object]) -> Node:
    return cast(Node, cls(**values))


class Name(Node):
    """One name: a column, an alias, a label, a part of a path. Names are case-sensitive."""

    text: str
    quoted: bool = detail(default=False, kw_only=True)
    """Whether it stood between back-ticks: ``CURRENT_DATE`` is a function then no longer."""

    def __str__(self) -> str:
        return self.text


class Identifier(Node):
    """A dotted path: ``catalog.database.table``, ``alias.column``, ``row.field``; at least one part."""

    parts: tuple[Name, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The parts as plain strings."""
        return tuple(part.text for part in self.parts)

    @property
    def last(self) -> Name:
        """The last part."""
        return self.parts[-1]

    def __str__(self) -> str:
        return ".".join(self.texts)


class FileName(Identifier):
    """``'flights.csv'`` where the name of a table may stand: a file, a folder or a glob; its text is the one part."""
