"""What a session's catalogs hold: making, listing and dropping tables, views, functions, catalogs and modules.

The part of :class:`~flowsql.table.session.environment.TableEnvironment` that runs no query.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowsql.common.public_api import public_api
from flowsql.configuration import set_option
from flowsql.table.session.user_functions import catalog_function
from flowsql.table.syntax.build import ast, path
from flowsql.table.syntax.object_paths import identifier, split_path
from flowsql.table.syntax.rewrite import placed
from flowsql_core.catalog import ANONYMOUS, CatalogView
from flowsql_core.errors import BindError, FlowSqlError, NotSupportedYetError
from flowsql_core.span import Source
from flowsql_core.types.logical import quote_identifier

if TYPE_CHECKING:
    from flowsql.table import catalog
    from flowsql.table.catalog import CatalogDescriptor
    from flowsql.table.module import Module, ModuleEntry
    from flowsql.table.schema import Schema
    from flowsql.table.session.execute import StatementExecutor
    from flowsql.table.table import Table
    from flowsql.table.table_descriptor import TableDescriptor
    from flowsql.table.table_result import TableResult
    from flowsql_core.catalog import Catalog, ObjectPath
    from flowsql_core.config import Configuration
    from flowsql_planner.catalog.manager import CatalogManager, Resolved


@public_api
class CatalogObjects:
    """Methods of a TableEnvironment about the objects of its catalogs."""

    catalogs: CatalogManager
    configuration: Configuration
    _executor: StatementExecutor
    #: Names of functions that stand in expressions as objects.
    _inline: set[str]

    def execute(self, statement: ast.Statement, source: Source) -> TableResult:
        """Run a parsed statement."""
        raise NotImplementedError

    def execute_sql(self, stmt: str) -> TableResult:
        """Run one statement."""
        raise NotImplementedError

    def _do(self, statement: ast.Statement) -> TableResult:
        """Run a statement that a program built; errors show it as SQL."""
        from flowsql_grammar import print_sql

        return self.execute_sql(print_sql(statement))

    def _define(self, statement: str, schema: Schema | None) -> None:
        """Run a CREATE TABLE that was made of a program's schema; expressions are kept as the program wrote them."""
        from flowsql_grammar import parse_statement

        source = Source(statement)
        try:
            self._executor.create_table(parse_statement(source), source, schema)
        except FlowSqlError as error:
            raise error.within(source) from None

    # Tables and views

    def create_temporary_table(
        self,
        path: str,
        descriptor: TableDescriptor,
        ignoreIfExists: bool = False,  # noqa: N803 - PyFlink's name
    ) -> None:
        """A table of this session, of a descriptor."""
        self._describe(path, descriptor, temporary=True, if_not_exists=ignoreIfExists)

    def create_table(
        self,
        path: str,
        descriptor: TableDescriptor,
        ignoreIfExists: bool = False,  # noqa: N803 - PyFlink's name
    ) -> bool:
        """A table of the catalog, of a descriptor. False when there is one already and that may be."""
        existed = self._found(path) is not None
        self._describe(path, descriptor, temporary=False, if_not_exists=ignoreIfExists)
        return not existed

    def drop_temporary_table(self, table_path: str) -> bool:
        """Forget a table of this session; whether there was one."""
        return self._drop_temporary(table_path, "TABLE")

    def drop_temporary_view(self, view_path: str) -> bool:
        """Forget a view of this session; whether there was one."""
        return self._drop_temporary(view_path, "VIEW")

    def drop_table(self, table_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Drop a table of its catalog; whether there was one."""
        return self._drop(table_path, "TABLE", ignore_if_not_exists)

    def drop_view(self, view_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Drop a view of its catalog; whether there was one."""
        return self._drop(view_path, "VIEW", ignore_if_not_exists)

    def list_tables(self) -> list[str]:
        """Tables and views of the current database, sorted."""
        return self.catalogs.object_names(self.catalogs.current_catalog, self.catalogs.current_database)

    def list_views(self) -> list[str]:
        """Views of the current database, sorted."""
        return [name for name in self.list_tables() if self._is_view(name)]

    def list_temporary_tables(self) -> list[str]:
        """Tables and views of this session in the current database, sorted."""
        return [name for name in self.list_tables() if self._is_temporary(name)]

    def list_temporary_views(self) -> list[str]:
        """Views of this session in the current database, sorted."""
        return [name for name in self.list_views() if self._is_temporary(name)]

    def list_materialized_tables(self) -> list[str]:
        """Materialized tables of the current database: FlowSQL makes none yet."""
        return []

    def list_models(self) -> list[str]:
        """Models of the current database: FlowSQL makes none yet."""
        return []

    def list_temporary_models(self) -> list[str]:
        """Models of this session: FlowSQL makes none yet."""
        return []

    def create_model(self, model_path: str, model_descriptor: object, ignore_if_exists: bool = False) -> None:
        """Not there yet."""
        raise NotSupportedYetError("create_model")

    def create_temporary_model(self, model_path: str, model_descriptor: object, ignore_if_exists: bool = False) -> None:
        """Not there yet."""
        raise NotSupportedYetError("create_temporary_model")

    def drop_model(self, model_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Not there yet."""
        raise NotSupportedYetError("drop_model")

    def drop_temporary_model(self, model_path: str) -> bool:
        """Not there yet."""
        raise NotSupportedYetError("drop_temporary_model")

    def _found(self, path: str) -> Resolved | None:
        return self.catalogs.lookup(self.catalogs.qualify(split_path(path)))

    def _here(self, name: str) -> Resolved | None:
        return self.catalogs.lookup(self.catalogs.qualify((name,)))

    def _is_view(self, name: str) -> bool:
        found = self._here(name)
        return found is not None and isinstance(found.value, CatalogView)

    def _is_temporary(self, name: str) -> bool:
        found = self._here(name)
        return found is not None and found.temporary

    def _drop_temporary(self, path: str, kind: str) -> bool:
        found = self._found(path)
        if found is None or not found.temporary or isinstance(found.value, CatalogView) is not (kind == "VIEW"):
            return False
        self._do(self._drop_statement(path, kind, True, True))
        return True

    def _drop(self, path: str, kind: str, if_exists: bool) -> bool:
        existed = self._found(path) is not None
        self._do(self._drop_statement(path, kind, False, if_exists))
        return existed

    @staticmethod
    def _drop_statement(path: str, kind: str, temporary: bool, if_exists: bool) -> ast.Drop:
        return ast.Drop(ast.ObjectKind(kind), identifier(path), temporary, if_exists=if_exists)

    def _create_view(self, path: str, table: Table, temporary: bool, ignore_if_exists: bool = False) -> bool:
        from flowsql.table.table import Table
        from flowsql_grammar.ast.node import NOWHERE

        if not isinstance(table, Table):
            raise BindError("not-a-table", f"A view is made of a Table, got {table!r}.")
        if table._environment is not self:
            raise BindError("other-environment", "The table belongs to a different TableEnvironment.")
        if not temporary and any(
            ANONYMOUS in node.texts for node in table._query.walk() if isinstance(node, ast.Identifier)
        ):
            raise BindError(
                "anonymous-in-view",
                f"The view '{path}' would outlive the rows that this program gave.",
                hint="create_temporary_view keeps it for the session",
            )
        existed = not temporary and self._found(path) is not None
        # Without places there is no text to quote: the catalog keeps the query as it is printed.
        query = placed(table._query, NOWHERE)
        statement = ast.CreateView(identifier(path), query, temporary=temporary, if_not_exists=ignore_if_exists)
        self.execute(statement, Source(f"CREATE VIEW {path}", "<table>"))
        return not existed

    def register_anonymous(self, descriptor: TableDescriptor) -> tuple[str, ...]:
        """A table without a name; the path under which trees find it."""
        connector = descriptor.get_options().get("connector", "table")
        parts = (ANONYMOUS, ANONYMOUS, f"*anonymous_{connector}${self._next_anonymous()}*")
        path = ".".join(f"`{part}`" for part in parts)
        self._describe(path, descriptor, temporary=True, if_not_exists=False)
        return parts

    def _describe(self, path: str, descriptor: TableDescriptor, temporary: bool, if_not_exists: bool) -> None:
        from flowsql_grammar import print_sql

        statement = descriptor.statement(path, temporary=temporary, if_not_exists=if_not_exists)
        self._define(print_sql(statement), descriptor.get_schema())

    def _next_anonymous(self) -> int:
        raise NotImplementedError

    def sink_path(self, target: str | TableDescriptor, table: Table) -> ast.Identifier:
        """The path of a table to write to; a descriptor without a schema takes the rows' columns."""
        from flowsql.table.table_descriptor import TableDescriptor

        if isinstance(target, str):
            return identifier(target)
        if not isinstance(target, TableDescriptor):
            raise BindError("bad-identifier", f"A sink is the path of a table or a TableDescriptor, got {target!r}.")
        return path(*self.register_anonymous(target.with_columns_of(table)))

    # Catalogs and databases

    def create_catalog(self, catalog_name: str, catalog_descriptor: CatalogDescriptor) -> None:
        """CREATE CATALOG."""
        options = tuple(ast.Option(key, value) for key, value in catalog_descriptor.options.items())
        name = ast.Name(catalog_name, quoted=True)
        self._do(ast.CreateCatalog(name, options, catalog_descriptor.comment))

    def register_catalog(self, catalog_name: str, catalog: Catalog) -> None:
        """Add a catalog that a program made (see :class:`flowsql_core.catalog.Catalog`)."""
        databases = catalog.databases()
        default = getattr(catalog, "default_database", None) or (databases[0] if databases else "default")
        self.catalogs.register_catalog(catalog_name, catalog, default)

    def get_catalog(self, catalog_name: str) -> catalog.Catalog | None:
        """A catalog by name."""
        from flowsql.table.catalog import Catalog

        found = self.catalogs.find_catalog(catalog_name)
        if found is None:
            return None
        return Catalog(catalog_name, found, self.catalogs.default_database(catalog_name), self)

    def define_in_catalog(self, path: ObjectPath, table: catalog.CatalogBaseTable) -> None:
        """Create the table that a program described for a catalog."""
        from flowsql.table.table_descriptor import TableDescriptor

        name = ".".join(map(quote_identifier, path.parts))
        schema, options = table.get_unresolved_schema(), table.get_options()
        descriptor = TableDescriptor(options, schema, table.partition_keys, table.get_comment() or None)
        self._describe(name, descriptor, temporary=False, if_not_exists=False)

    def list_catalogs(self) -> list[str]:
        """Names, sorted."""
        return self.catalogs.catalog_names()

    def list_databases(self) -> list[str]:
        """Databases of the current catalog, sorted."""
        return sorted(self.catalogs.catalog(self.catalogs.current_catalog).databases())

    def use_catalog(self, catalog_name: str) -> None:
        """Make a catalog current."""
        self.catalogs.use_catalog(catalog_name)

    def use_database(self, database_name: str) -> None:
        """Make a database of the current catalog current."""
        self.catalogs.use_database(self.catalogs.current_catalog, database_name)

    def get_current_catalog(self) -> str:
        """The name of the current catalog."""
        return self.catalogs.current_catalog

    def get_current_database(self) -> str:
        """The name of the current database."""
        return self.catalogs.current_database

    # Modules

    def load_module(self, module_name: str, module: Module | None = None) -> None:
        """LOAD MODULE: ``core`` is the one there is."""
        self._do(ast.LoadModule(ast.Name(module_name, quoted=True)))

    def unload_module(self, module_name: str) -> None:
        """UNLOAD MODULE."""
        self._do(ast.UnloadModule(ast.Name(module_name, quoted=True)))

    def use_modules(self, *module_names: str) -> None:
        """USE MODULES: these, in this order."""
        self._do(ast.UseModules(tuple(ast.Name(name, quoted=True) for name in module_names)))

    def list_modules(self) -> list[str]:
        """Used modules in the order of resolution."""
        return list(self.catalogs.modules.used)

    def list_full_modules(self) -> list[ModuleEntry]:
        """Loaded modules, each with whether it is used."""
        from flowsql.table.module import ModuleEntry

        return [ModuleEntry(name, used) for name, used in self.catalogs.modules.full()]

    # Functions

    def create_temporary_function(self, path: str, function: Any) -> None:
        """Make a Python function known under a path of this session."""
        functions = self.catalogs.functions
        functions.create(functions.qualify(split_path(path)), catalog_function(function), True, False, None)

    def create_temporary_system_function(self, name: str, function: Any) -> None:
        """Make a Python function known in all databases of this session, before all others of its name."""
        self.catalogs.functions.create_system(name, catalog_function(function), False, None)

    def create_function(self, path: str, function: Any, ignore_if_exists: bool | None = None) -> None:
        """Keep a Python function in a catalog: by the path of its module, so a lambda has to be a temporary one."""
        from flowsql.table.udf import stored_function

        functions = self.catalogs.functions
        where = functions.qualify(split_path(path))
        functions.create(where, stored_function(function), False, bool(ignore_if_exists), None)

    def drop_function(self, path: str) -> bool:
        """Drop a function of its catalog; whether there was one."""
        functions = self.catalogs.functions
        where = functions.qualify(split_path(path))
        existed = where.name in self.catalogs.catalog(where.catalog).functions(where.database)
        functions.drop(where, False, True, None)
        return existed

    def drop_temporary_function(self, path: str) -> bool:
        """Forget a function of this session; whether there was one."""
        functions = self.catalogs.functions
        parts = split_path(path)
        existed = functions.is_temporary(parts) and functions.find_system(parts[-1]) is None
        functions.drop(functions.qualify(parts), True, True, None)
        return existed

    def drop_temporary_system_function(self, name: str) -> bool:
        """Forget a system function of this session; whether there was one."""
        functions = self.catalogs.functions
        existed = functions.find_system(name) is not None
        functions.drop_system(name, True, None)
        return existed

    def list_functions(self) -> list[str]:
        """All functions that a name may stand for here, sorted."""
        return self._listed("SHOW FUNCTIONS")

    def list_user_defined_functions(self) -> list[str]:
        """Functions that were made here or stand in the current database, sorted."""
        return self._listed("SHOW USER FUNCTIONS")

    def _listed(self, statement: str) -> list[str]:
        inline = {name.lower() for name in self._inline}
        with self.execute_sql(statement).collect() as rows:
            return [name for row in rows if (name := str(row[0])) not in inline]

    # What Python programs bring along

    def add_python_file(self, file_path: str) -> None:
        """Make a module or a folder of modules importable."""
        path = Path(file_path).resolve()
        folder = str(path.parent if path.suffix == ".py" else path)
        if folder not in sys.path:
            sys.path.insert(0, folder)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Install packages for the functions of this process with pip, into a folder that joins ``sys.path`` in front.

        Args:
            requirements_file_path: a file of requirements, as pip reads it.
            requirements_cache_dir: a folder of packages; with it nothing is downloaded.

        Raises:
            BindError: there is no such file or folder, or pip fails.
        """
        from flowsql.util.python_packages import install_requirements

        install_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Let row-wise functions open files of an archive by relative paths; they then run in worker processes.

        Args:
            archive_path: a zip or tar file.
            target_dir: the folder in which its files appear; the name of the archive, unless told.

        Raises:
            BindError: there is no such file, or it is no archive.
        """
        if not Path(archive_path).is_file():
            raise BindError("python-file-not-found", f"There is no archive '{archive_path}'.")
        path = str(Path(archive_path).resolve())
        added = path if target_dir is None else f"{path}#{target_dir}"
        before = self.configuration.text("python.archives")
        set_option(self.configuration, "python.archives", f"{before},{added}" if before else added)
