"""A project as it stands in its files: definitions, and nodes, which are the statements that write tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from flowsql.pipeline.names import functions_called, tables_read
from flowsql.testing.files import SUFFIX
from flowsql_core.catalog import ANONYMOUS, ObjectPath
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.record import record
from flowsql_core.span import Source, Span
from flowsql_grammar import ast

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment
    from flowsql_grammar.ast.statement import Statement

#: What the runner keeps of a project, inside of it.
OWN_FOLDER = ".flowsql"


@record
class Place:
    """Where a statement, or a name in it, stands."""

    source: Source
    span: Span

    def __str__(self) -> str:
        return f"{self.source.name}:{self.source.position(self.span.start)[0]}"

    def error(self, code: str, message: str, hint: str | None = None) -> FlowSqlError:
        """What is wrong there."""
        return BindError(code, message, self.span, hint).within(self.source)


@dataclass(slots=True, eq=False)
class Written:
    """A statement of a project with the options that hold where it stands.

    ``reads``: tables and views that it names, with the places. ``calls``: functions, in small letters.
    """

    statement: Statement
    place: Place
    settings: Mapping[str, str]
    reads: dict[ObjectPath, Place] = field(default_factory=dict)
    calls: frozenset[str] = frozenset()


W = TypeVar("W", bound=Written)


@dataclass(slots=True, eq=False)
class Definition(Written):
    """CREATE of anything; ``path``: of a table or view. A CREATE TABLE AS is also a node."""

    path: ObjectPath | None = None
    function: str | None = None

    @property
    def rank(self) -> int:
        """Catalogs before databases before functions before what may use them."""
        match self.statement:
            case ast.CreateCatalog():
                return 0
            case ast.CreateDatabase():
                return 1
            case ast.CreateFunction():
                return 2
        return 3


@dataclass(slots=True, eq=False)
class Node(Written):
    """A statement that writes ``tables``; ``definition``: of a CREATE TABLE AS."""

    tables: tuple[ObjectPath, ...] = ()
    definition: Definition | None = None

    @property
    def title(self) -> str:
        """The tables by the names that are short enough for a report."""
        return ", ".join(path.name for path in self.tables)


@dataclass(slots=True)
class Project:
    """Everything that the files of a folder say, in their order."""

    definitions: list[Definition] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    @property
    def tables(self) -> dict[ObjectPath, Definition]:
        """Tables and views by their paths."""
        return {each.path: each for each in self.definitions if each.path is not None}

    @property
    def functions(self) -> dict[str, Definition]:
        """Functions by their last names, in small letters."""
        return {each.function: each for each in self.definitions if each.function is not None}


def sql_files(folder: Path) -> list[Path]:
    """The files of a project in order; hidden folders are none of it, nor are files of tests."""
    found = (path.relative_to(folder) for path in folder.rglob("*.sql") if not path.name.endswith(SUFFIX))
    return [folder / path for path in sorted(found) if not any(part.startswith(".") for part in path.parts)]


def read_project(folder: Path, environment: TableEnvironment) -> Project:
    """Read all files; SET and RESET hold for the rest of their file. ``environment``: of which names are.

    Raises:
        FlowSqlError: a statement that cannot be read, or that has no place in a pipeline; a name that is defined twice.
    """
    project = Project()
    for path in sql_files(folder):
        source = Source(_text(path), str(path.relative_to(folder)))
        environment.configuration.reset_all()
        try:
            for statement in environment.statements(source):
                _take(project, statement, source, environment)
        except FlowSqlError as error:
            raise error.within(source) from None
    environment.configuration.reset_all()
    _refuse_doubles(project)
    return project


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it is not UTF-8 text (byte {error.start})"
        raise BindError("unreadable-file", f"Cannot read '{path}': {why}") from None


def _take(project: Project, statement: Statement, source: Source, environment: TableEnvironment) -> None:
    place = Place(source, statement.span)
    if isinstance(statement, ast.Execute) and isinstance(statement.statement, ast.Insert):
        statement = statement.statement
    settings = dict(environment.configuration.items())
    match statement:
        case ast.Set(key=str()) | ast.Reset():
            environment.execute(statement, source)
            mode = environment.configuration.text("execution.runtime-mode") or ""
            if mode.lower() != "batch":
                raise place.error("pipeline-mode", "A pipeline runs in batch mode", "leave execution.runtime-mode out")
        case ast.CreateTable() | ast.CreateView():
            found = _described(Definition(statement, place, settings), environment)
            found.path = environment.catalogs.qualify(statement.name.texts)
            project.definitions.append(found)
            if isinstance(statement, ast.CreateTable) and statement.query is not None:
                node = Node(statement, place, settings, found.reads, found.calls, (found.path,), found)
                project.nodes.append(node)
        case ast.CreateFunction():
            found = Definition(statement, place, settings, function=statement.name.last.text.lower())
            project.definitions.append(found)
        case ast.CreateCatalog() | ast.CreateDatabase():
            project.definitions.append(Definition(statement, place, settings))
        case ast.Insert() | ast.StatementSet():
            inserts = (statement,) if isinstance(statement, ast.Insert) else statement.statements
            tables = tuple(environment.catalogs.qualify(insert.target.texts) for insert in inserts)
            node = _described(Node(statement, place, settings), environment)
            node.tables = tuple(dict.fromkeys(tables))
            project.nodes.append(node)
        case _:
            raise place.error(
                "not-in-a-pipeline",
                "This statement has no place in a pipeline",
                "a project holds SET, CREATE, INSERT, CREATE TABLE AS and statement sets; names of other databases are "
                "written in full",
            )


def _described(found: W, environment: TableEnvironment) -> W:
    """The same with the names that the statement reads."""
    for name in tables_read(found.statement):
        if isinstance(name, ast.FileName):
            path = ObjectPath(ANONYMOUS, ANONYMOUS, name.last.text)
        else:
            path = environment.catalogs.qualify(name.texts)
        found.reads.setdefault(path, Place(found.place.source, name.span))
    found.calls = functions_called(found.statement)
    return found


def _refuse_doubles(project: Project) -> None:
    seen: dict[object, Definition] = {}
    for each in project.definitions:
        key: object = each.path if each.path is not None else each.function
        if key is None:
            continue
        first = seen.setdefault(key, each)
        if first is not each:
            raise each.place.error("defined-twice", f"{first.place} and {each.place} both define {_shown(key)}")


def _shown(key: object) -> str:
    return f"'{key}'" if isinstance(key, ObjectPath) else f"function '{key}'"
