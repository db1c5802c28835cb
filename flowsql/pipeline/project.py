"""A project as it stands in its files: definitions, and nodes, which are the statements that write tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from flowsql.pipeline.folder import ProjectFolder
from flowsql.pipeline.manifest import Overlay
from flowsql.pipeline.names import functions_called, tables_read
from flowsql.pipeline.place import Place
from flowsql.pipeline.variables import with_variables
from flowsql.table.syntax.object_paths import split_path
from flowsql_core.catalog import ANONYMOUS, ObjectPath
from flowsql_core.config import RUNTIME_MODE, RuntimeMode
from flowsql_core.errors import BindError, FlowSqlError, did_you_mean
from flowsql_core.secrets.placeholders import filled
from flowsql_core.span import Source
from flowsql_grammar import ast

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment
    from flowsql_grammar.ast.statement import Statement


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


def read_project(opened: ProjectFolder, environment: TableEnvironment, *, fills: bool = True) -> Project:
    """Read all files; SET and RESET hold for the rest of their file.

    Args:
        opened: the project with its profile, whose WITH options and variables are put in.
        environment: of which names are.
        fills: whether what stands for placeholders in WITH options has to be there.

    Raises:
        FlowSqlError: a statement that cannot be read, or that has no place in a project; a name that is defined twice;
            a table of the profile that the project does not have; a secret that is not there.
    """
    reader = _Reader(opened, environment)
    for path in opened.sql_files():
        source = Source(_text(path), str(path.relative_to(opened.folder)))
        if opened.variables is not None:
            source = with_variables(source, opened.variables)
        reader.read(source)
    environment.configuration.reset_all()
    _refuse_doubles(reader.project)
    reader.check_overlays()
    if fills:
        reader.check_placeholders()
    return reader.project


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it is not UTF-8 text (byte {error.start})"
        raise BindError("unreadable-file", f"Cannot read '{path}': {why}") from None


class _Reader:
    """Takes the statements of the files of a project."""

    def __init__(self, opened: ProjectFolder, environment: TableEnvironment) -> None:
        self.project = Project()
        self._environment = environment
        self._mode = environment.configuration.get(RUNTIME_MODE)
        self._overlays: dict[ObjectPath, tuple[Overlay, bool]] = {}
        for overlay, is_target in opened.overlays:
            path = environment.catalogs.qualify(split_path(overlay.table))
            if path in self._overlays:
                first = self._overlays[path][0].place
                message = f"{first} and {overlay.place} both give options to '{overlay.table}'"
                raise overlay.place.error("defined-twice", message, "a table is either read only or written")
            self._overlays[path] = overlay, is_target

    def read(self, source: Source) -> None:
        self._environment.configuration.reset_all()
        try:
            for statement in self._environment.statements(source):
                self._take(statement, source)
        except FlowSqlError as error:
            raise error.within(source) from None

    def _take(self, statement: Statement, source: Source) -> None:
        environment, project = self._environment, self.project
        place = Place(source, statement.span)
        if isinstance(statement, ast.Execute) and isinstance(statement.statement, ast.Insert):
            statement = statement.statement
        settings = dict(environment.configuration.items())
        match statement:
            case ast.Set(key=str()) | ast.Reset():
                environment.execute(statement, source)
                if environment.configuration.get(RUNTIME_MODE) is not self._mode:
                    raise _other_mode(place, self._mode)
            case ast.CreateTable() | ast.CreateView():
                path = environment.catalogs.qualify(statement.name.texts)
                if isinstance(statement, ast.CreateTable) and path in self._overlays:
                    statement = _overlaid(statement, self._overlays[path][0])
                found = _described(Definition(statement, place, settings), environment)
                found.path = path
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
                    "a project holds SET, CREATE, INSERT, CREATE TABLE AS and statement sets; names of other databases "
                    "are written in full",
                )

    def check_overlays(self) -> None:
        """Tables of the profile are those of the project, read or written as it says."""
        tables = self.project.tables
        writers = {path: node for node in self.project.nodes for path in node.tables}
        for path, (overlay, is_target) in self._overlays.items():
            definition = tables.get(path)
            if definition is None or not isinstance(definition.statement, ast.CreateTable):
                names = [known.name for known, each in tables.items() if isinstance(each.statement, ast.CreateTable)]
                hint = did_you_mean(path.name, names)
                raise overlay.place.error("no-table", f"The project has no table '{overlay.table}'", hint)
            writer = writers.get(path)
            if is_target and writer is None:
                message = f"Nothing in the project writes '{overlay.table}'"
                raise overlay.place.error("not-a-target", message, "its options belong into 'sources'")
            if not is_target and writer is not None:
                message = f"'{overlay.table}' is written by {writer.place}"
                raise overlay.place.error("not-a-source", message, "its options belong into 'targets'")

    def check_placeholders(self) -> None:
        """What stands for placeholders in WITH options is there."""
        for definition in self.project.definitions:
            if not isinstance(definition.statement, ast.CreateTable | ast.CreateCatalog):
                continue
            overlay = self._overlays.get(definition.path, (None,))[0] if definition.path is not None else None
            places = {} if overlay is None else {option.key: option.place for option in overlay.options}
            for option in definition.statement.options:
                place = places.get(option.key) or Place(definition.place.source, option.span)
                try:
                    filled(option.value)
                except FlowSqlError as error:
                    raise place.located(error) from None


def _other_mode(place: Place, mode: RuntimeMode) -> FlowSqlError:
    if mode is RuntimeMode.BATCH:
        return place.error("pipeline-mode", "A pipeline runs in batch mode", "leave execution.runtime-mode out")
    hint = "execution.runtime-mode is of the whole project: it stands in [options] of flowsql.toml"
    return place.error("pipeline-mode", f"This project runs in {mode.value} mode", hint)


def _overlaid(statement: ast.CreateTable, overlay: Overlay) -> ast.CreateTable:
    own = {} if overlay.replaces else {option.key: option for option in statement.options}
    given = {each.key: ast.Option(each.key, each.value, span=statement.name.span) for each in overlay.options}
    return replace(statement, options=tuple({**own, **given}.values()))


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
