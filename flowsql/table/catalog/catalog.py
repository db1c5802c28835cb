"""``Catalog``: a catalog of a session as programs read and change it, under PyFlink's names and with its exceptions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeAlias

from flowsql.common.public_api import public_api
from flowsql.table.catalog.entries import (
    CatalogBaseTable,
    CatalogDatabase,
    CatalogFunction,
    CatalogPartition,
    CatalogPartitionSpec,
    CatalogTableStatistics,
)
from flowsql.table.catalog.objects import ObjectPath
from flowsql.table.catalog.statistics import CatalogColumnStatistics, shown_columns, with_columns, with_rows
from flowsql.util.exceptions import (
    CatalogException,
    DatabaseAlreadyExistException,
    DatabaseNotEmptyException,
    DatabaseNotExistException,
    FunctionAlreadyExistException,
    FunctionNotExistException,
    ModelNotExistException,
    PartitionAlreadyExistsException,
    PartitionNotExistException,
    PartitionSpecInvalidException,
    TableAlreadyExistException,
    TableNotExistException,
    TableNotPartitionedException,
)
from flowsql_core import catalog as core
from flowsql_core.errors import NotSupportedYetError

_Partitions: TypeAlias = tuple[core.CatalogPartition, ...]
_PartitionChange: TypeAlias = Callable[[_Partitions], _Partitions]
#: What stands for a new definition of a table until it takes the old one's place.
_ALTERED = "{name}$altered"


class Session(Protocol):
    """What a catalog asks of its session."""

    def define_in_catalog(self, path: core.ObjectPath, table: CatalogBaseTable) -> None:
        """Create a table of its description."""
        ...


@public_api
class Catalog:
    """A catalog of a session. What is changed here, SQL sees at once."""

    def __init__(self, name: str, store: core.Catalog, default_database: str, session: Session) -> None:
        self._name = name
        self._store = store
        self._default = default_database
        self._session = session

    # Databases

    def get_default_database(self) -> str:
        """The database that USE CATALOG makes current."""
        return self._default

    def list_databases(self) -> list[str]:
        """Names, sorted."""
        return sorted(self._store.databases())

    def database_exists(self, database_name: str) -> bool:
        """Whether there is a database."""
        return self._store.database(database_name) is not None

    def get_database(self, database_name: str) -> CatalogDatabase:
        """A database; DatabaseNotExistException without it."""
        found = self._store.database(database_name)
        if found is None:
            raise self._no_database(database_name)
        return CatalogDatabase(found)

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool) -> None:
        """Add a database; DatabaseAlreadyExistException where it is there and that may not be."""
        if not self.database_exists(name):
            self._store.create_database(name, database.stored)
        elif not ignore_if_exists:
            raise DatabaseAlreadyExistException(
                "database-exists", f"Database {name} already exists in Catalog {self._name}."
            )

    def drop_database(self, name: str, ignore_if_exists: bool) -> None:
        """Remove an empty database; DatabaseNotExistException, DatabaseNotEmptyException."""
        if not self.database_exists(name):
            if ignore_if_exists:
                return
            raise self._no_database(name)
        if self._store.objects(name) or self._store.functions(name):
            raise DatabaseNotEmptyException(
                "database-not-empty", f"Database {name} in catalog {self._name} is not empty."
            )
        self._store.drop_database(name)

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool) -> None:
        """Replace properties and comment of a database."""
        if self.database_exists(name):
            self._store.alter_database(name, new_database.stored)
        elif not ignore_if_not_exists:
            raise self._no_database(name)

    def _no_database(self, name: str) -> DatabaseNotExistException:
        return DatabaseNotExistException(
            "database-not-found", f"Database {name} does not exist in Catalog {self._name}."
        )

    def _in_database(self, name: str) -> str:
        if not self.database_exists(name):
            raise self._no_database(name)
        return name

    # Tables and views

    def list_tables(self, database_name: str) -> list[str]:
        """Tables and views, sorted."""
        return sorted(self._store.objects(self._in_database(database_name)))

    def list_views(self, database_name: str) -> list[str]:
        """Views, sorted."""
        objects = self._store.objects(self._in_database(database_name))
        return sorted(name for name, value in objects.items() if isinstance(value, core.CatalogView))

    def list_materialized_tables(self, database_name: str) -> list[str]:
        """None: FlowSQL makes none yet."""
        self._in_database(database_name)
        return []

    def table_exists(self, table_path: ObjectPath) -> bool:
        """Whether there is a table or view."""
        return self._find(table_path) is not None

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        """A table or view; TableNotExistException without it."""
        return CatalogBaseTable(self._table(table_path))

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        """Add a table or view; DatabaseNotExistException, TableAlreadyExistException."""
        self._in_database(table_path.get_database_name())
        if not self.table_exists(table_path):
            self._put(table_path, table)
        elif not ignore_if_exists:
            raise self._table_there(table_path)

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Remove a table or view; TableNotExistException."""
        if self.table_exists(table_path):
            self._store.drop(table_path.get_database_name(), table_path.get_object_name())
        elif not ignore_if_not_exists:
            raise self._no_table(table_path)

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        """Give a table or view another name; TableNotExistException, TableAlreadyExistException."""
        database, name = table_path.get_database_name(), table_path.get_object_name()
        found = self._find(table_path)
        if found is None:
            if ignore_if_not_exists:
                return
            raise self._no_table(table_path)
        renamed = ObjectPath(database, new_table_name)
        if self.table_exists(renamed):
            raise self._table_there(renamed)
        if isinstance(self._store, core.TableKeeper):
            self._store.rename(database, name, new_table_name)
            return
        details = self._store.details(database, name)
        self._store.put(database, new_table_name, found)
        self._store.put_details(database, new_table_name, details)
        self._store.drop(database, name)

    def alter_table(self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool) -> None:
        """Replace a table by a table, a view by a view; TableNotExistException."""
        found = self._find(table_path)
        if found is None:
            if ignore_if_not_exists:
                return
            raise self._no_table(table_path)
        if isinstance(found, core.CatalogView) is not new_table.is_view:
            was, will = ("VIEW", "TABLE") if isinstance(found, core.CatalogView) else ("TABLE", "VIEW")
            raise CatalogException(
                "table-kind",
                f"Table kinds do not match. Existing table '{table_path}' is {was} and new table is {will}.",
            )
        database, name = table_path.get_database_name(), table_path.get_object_name()
        stored = new_table.stored
        if stored is None:
            # The description is resolved beside the old table, so that a mistake in it changes nothing.
            beside = ObjectPath(database, _ALTERED.format(name=name))
            self._put(beside, new_table)
            stored = self._table(beside)
            self._store.drop(database, beside.get_object_name())
        details = self._store.details(database, name)
        self._store.put(database, name, stored)
        self._store.put_details(database, name, details)

    def _find(self, path: ObjectPath) -> core.CatalogObject | None:
        if not self.database_exists(path.get_database_name()):
            return None
        return self._store.get(path.get_database_name(), path.get_object_name())

    def _table(self, path: ObjectPath) -> core.CatalogObject:
        found = self._find(path)
        if found is None:
            raise self._no_table(path)
        return found

    def _put(self, path: ObjectPath, table: CatalogBaseTable) -> None:
        if table.stored is not None:
            self._store.put(path.get_database_name(), path.get_object_name(), table.stored)
            return
        whole = core.ObjectPath(self._name, path.get_database_name(), path.get_object_name())
        self._session.define_in_catalog(whole, table)

    def _no_table(self, path: ObjectPath) -> TableNotExistException:
        return TableNotExistException(
            "table-not-found", f"Table (or view) {path} does not exist in Catalog {self._name}."
        )

    def _table_there(self, path: ObjectPath) -> TableAlreadyExistException:
        return TableAlreadyExistException(
            "table-exists", f"Table (or view) {path} already exists in Catalog {self._name}."
        )

    # Partitions

    def list_partitions(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec | None = None
    ) -> list[CatalogPartitionSpec]:
        """Partitions of a table, with these values; TableNotExistException, TableNotPartitionedException."""
        self._partition_keys(table_path)
        wanted = {} if partition_spec is None else partition_spec.get_partition_spec()
        found = (dict(partition.values) for partition in self._details(table_path).partitions)
        return [CatalogPartitionSpec(values) for values in found if wanted.items() <= values.items()]

    def partition_exists(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> bool:
        """Whether there is a partition."""
        return self._find(table_path) is not None and self._partition(table_path, partition_spec) is not None

    def get_partition(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> CatalogPartition:
        """A partition; PartitionNotExistException without it."""
        found = None if self._find(table_path) is None else self._partition(table_path, partition_spec)
        if found is None:
            raise self._no_partition(table_path, partition_spec)
        return CatalogPartition(dict(found.properties))

    def create_partition(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        partition: CatalogPartition,
        ignore_if_exists: bool,
    ) -> None:
        """Add a partition; PartitionSpecInvalidException, PartitionAlreadyExistsException and those of its table."""
        keys, given = self._partition_keys(table_path), partition_spec.get_partition_spec()
        if set(keys) != set(given):
            raise PartitionSpecInvalidException(
                "partition-spec",
                f"PartitionSpec {partition_spec} does not match partition keys [{', '.join(keys)}] of table "
                f"{table_path} in catalog {self._name}.",
            )
        if self._partition(table_path, partition_spec) is not None:
            if ignore_if_exists:
                return
            raise PartitionAlreadyExistsException(
                "partition-exists",
                f"Partition {partition_spec} of table {table_path} in catalog {self._name} already exists.",
            )
        values = tuple((key, given[key]) for key in keys)
        made = core.CatalogPartition(values, tuple(partition.get_properties().items()))
        self._change(table_path, lambda partitions: (*partitions, made))

    def drop_partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec, ignore_if_not_exists: bool
    ) -> None:
        """Remove a partition; PartitionNotExistException."""
        found = self._known_partition(table_path, partition_spec, ignore_if_not_exists)
        if found is None:
            return
        self._change(table_path, lambda partitions: tuple(one for one in partitions if one is not found))

    def alter_partition(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        new_partition: CatalogPartition,
        ignore_if_not_exists: bool,
    ) -> None:
        """Replace the properties of a partition; PartitionNotExistException."""
        found = self._known_partition(table_path, partition_spec, ignore_if_not_exists)
        if found is None:
            return
        altered = replace(found, properties=tuple(new_partition.get_properties().items()))
        self._change(table_path, lambda partitions: tuple(altered if one is found else one for one in partitions))

    def _known_partition(
        self, path: ObjectPath, spec: CatalogPartitionSpec, ignore_if_not_exists: bool
    ) -> core.CatalogPartition | None:
        if self.partition_exists(path, spec):
            return self._partition(path, spec)
        if ignore_if_not_exists:
            return None
        raise self._no_partition(path, spec)

    def _partition_keys(self, path: ObjectPath) -> tuple[str, ...]:
        found = self._table(path)
        keys = found.partition_keys if isinstance(found, core.CatalogTable) else ()
        if not keys:
            raise TableNotPartitionedException(
                "not-partitioned", f"Table {path} in catalog {self._name} is not partitioned."
            )
        return keys

    def _details(self, path: ObjectPath) -> core.TableDetails:
        return self._store.details(path.get_database_name(), path.get_object_name())

    def _partition(self, path: ObjectPath, spec: CatalogPartitionSpec) -> core.CatalogPartition | None:
        wanted = spec.get_partition_spec()
        return next((one for one in self._details(path).partitions if dict(one.values) == wanted), None)

    def _change(self, path: ObjectPath, change: _PartitionChange) -> None:
        details = self._details(path)
        changed = replace(details, partitions=change(details.partitions))
        self._store.put_details(path.get_database_name(), path.get_object_name(), changed)

    def _no_partition(self, path: ObjectPath, spec: CatalogPartitionSpec) -> PartitionNotExistException:
        return PartitionNotExistException(
            "partition-not-found", f"Partition {spec} of table {path} in catalog {self._name} does not exist."
        )

    # Functions

    def list_functions(self, database_name: str) -> list[str]:
        """Functions, sorted."""
        return sorted(self._store.functions(self._in_database(database_name)))

    def function_exists(self, function_path: ObjectPath) -> bool:
        """Whether there is a function."""
        return self._function(function_path) is not None

    def get_function(self, function_path: ObjectPath) -> CatalogFunction:
        """A function; FunctionNotExistException without it."""
        found = self._function(function_path)
        if found is None:
            raise self._no_function(function_path)
        return CatalogFunction(found)

    def create_function(self, function_path: ObjectPath, function: CatalogFunction, ignore_if_exists: bool) -> None:
        """Add a function; DatabaseNotExistException, FunctionAlreadyExistException."""
        database = self._in_database(function_path.get_database_name())
        if not self.function_exists(function_path):
            self._store.put_function(database, function_path.get_object_name().lower(), function.stored)
        elif not ignore_if_exists:
            raise FunctionAlreadyExistException(
                "function-exists", f"Function {function_path} already exists in Catalog {self._name}."
            )

    def alter_function(
        self, function_path: ObjectPath, new_function: CatalogFunction, ignore_if_not_exists: bool
    ) -> None:
        """Replace a function; FunctionNotExistException."""
        if self.function_exists(function_path):
            database, name = function_path.get_database_name(), function_path.get_object_name().lower()
            self._store.put_function(database, name, new_function.stored)
        elif not ignore_if_not_exists:
            raise self._no_function(function_path)

    def drop_function(self, function_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Remove a function; FunctionNotExistException."""
        if self.function_exists(function_path):
            self._store.drop_function(function_path.get_database_name(), function_path.get_object_name().lower())
        elif not ignore_if_not_exists:
            raise self._no_function(function_path)

    def _function(self, path: ObjectPath) -> core.CatalogFunction | None:
        return self._store.functions(path.get_database_name()).get(path.get_object_name().lower())

    def _no_function(self, path: ObjectPath) -> FunctionNotExistException:
        return FunctionNotExistException(
            "function-not-found", f"Function {path} does not exist in Catalog {self._name}."
        )

    # Statistics

    def get_table_statistics(self, table_path: ObjectPath) -> CatalogTableStatistics:
        """What is known of a table's rows; TableNotExistException."""
        self._table(table_path)
        return _shown(self._details(table_path).statistics)

    def alter_table_statistics(
        self, table_path: ObjectPath, table_statistics: CatalogTableStatistics, ignore_if_not_exists: bool
    ) -> None:
        """Say how many rows a table has; TableNotExistException."""
        if self._find(table_path) is None:
            if ignore_if_not_exists:
                return
            raise self._no_table(table_path)
        self._put_statistics(
            table_path, with_rows(self._details(table_path).statistics, table_statistics.get_row_count())
        )

    def get_partition_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogTableStatistics:
        """What is known of a partition's rows; PartitionNotExistException."""
        self.get_partition(table_path, partition_spec)
        found = self._partition(table_path, partition_spec)
        return _shown(None if found is None else found.statistics)

    def bulk_get_partition_statistics(
        self, table_path: ObjectPath, partition_specs: list[CatalogPartitionSpec]
    ) -> list[CatalogTableStatistics]:
        """The same of several partitions."""
        return [self.get_partition_statistics(table_path, spec) for spec in partition_specs]

    def alter_partition_statistics(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        partition_statistics: CatalogTableStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        """Say how many rows a partition has; PartitionNotExistException."""
        found = self._known_partition(table_path, partition_spec, ignore_if_not_exists)
        if found is None:
            return
        known = replace(found, statistics=with_rows(found.statistics, partition_statistics.get_row_count()))
        self._change(table_path, lambda partitions: tuple(known if one is found else one for one in partitions))

    def get_table_column_statistics(self, table_path: ObjectPath) -> CatalogColumnStatistics:
        """What is known of a table's columns; TableNotExistException."""
        self._table(table_path)
        return shown_columns(self._details(table_path).statistics)

    def alter_table_column_statistics(
        self, table_path: ObjectPath, column_statistics: CatalogColumnStatistics, ignore_if_not_exists: bool
    ) -> None:
        """Say what is known of a table's columns, in the place of what was; TableNotExistException."""
        if self._find(table_path) is None:
            if ignore_if_not_exists:
                return
            raise self._no_table(table_path)
        self._put_statistics(table_path, with_columns(self._details(table_path).statistics, column_statistics))

    def get_partition_column_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogColumnStatistics:
        """What is known of a partition's columns; PartitionNotExistException."""
        self.get_partition(table_path, partition_spec)
        found = self._partition(table_path, partition_spec)
        return shown_columns(None if found is None else found.statistics)

    def bulk_get_partition_column_statistics(
        self, table_path: ObjectPath, partition_specs: list[CatalogPartitionSpec]
    ) -> list[CatalogColumnStatistics]:
        """The same of several partitions."""
        return [self.get_partition_column_statistics(table_path, spec) for spec in partition_specs]

    def alter_partition_column_statistics(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        column_statistics: CatalogColumnStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        """Say what is known of a partition's columns, in the place of what was; PartitionNotExistException."""
        found = self._known_partition(table_path, partition_spec, ignore_if_not_exists)
        if found is None:
            return
        known = replace(found, statistics=with_columns(found.statistics, column_statistics))
        self._change(table_path, lambda partitions: tuple(known if one is found else one for one in partitions))

    def _put_statistics(self, path: ObjectPath, statistics: core.TableStatistics) -> None:
        details = replace(self._details(path), statistics=statistics)
        self._store.put_details(path.get_database_name(), path.get_object_name(), details)

    # What FlowSQL has none of

    def list_procedures(self, database_name: str) -> list[str]:
        """None."""
        self._in_database(database_name)
        return []

    def get_procedure(self, procedure_path: ObjectPath) -> object:
        """CatalogException."""
        raise CatalogException(
            "procedure-not-found", f"Procedure {procedure_path} does not exist in Catalog {self._name}."
        )

    def list_models(self, database_name: str) -> list[str]:
        """None."""
        self._in_database(database_name)
        return []

    def model_exists(self, model_path: ObjectPath) -> bool:
        """There is none."""
        del model_path
        return False

    def get_model(self, model_path: ObjectPath) -> object:
        """ModelNotExistException."""
        raise ModelNotExistException("model-not-found", f"Model {model_path} does not exist in Catalog {self._name}.")

    def create_model(self, model_path: ObjectPath, model: object, ignore_if_exists: bool) -> None:
        """Refused."""
        raise NotSupportedYetError("create_model")

    def alter_model(self, model_path: ObjectPath, new_model: object, ignore_if_not_exists: bool) -> None:
        """Refused."""
        raise NotSupportedYetError("alter_model")

    def rename_model(self, model_path: ObjectPath, new_model_name: str, ignore_if_not_exists: bool) -> None:
        """Refused."""
        raise NotSupportedYetError("rename_model")

    def drop_model(self, model_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Refused."""
        raise NotSupportedYetError("drop_model")


def _shown(statistics: core.TableStatistics | None) -> CatalogTableStatistics:
    if statistics is None or statistics.rows == core.UNKNOWN_ROWS:
        return CatalogTableStatistics()
    return CatalogTableStatistics(statistics.rows, 0, 0, 0)
