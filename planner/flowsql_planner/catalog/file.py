"""``FileCatalog``: a catalog of type ``file``, whose objects survive the session as JSON files in a folder.

    <path>/<database>/database.json
    <path>/<database>/tables/<name>.json       a table or view, with its partitions and statistics
    <path>/<database>/functions/<name>.json

Nothing is cached: several sessions over one folder see each other's objects. Each file is replaced as a whole.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from flowsql_core.catalog import (
    CatalogDatabase,
    CatalogFunction,
    CatalogObject,
    CatalogTable,
    CatalogView,
    TableDetails,
)
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.json_form import from_json, to_json
from flowsql_core.secrets.plain import refuse_plain_secrets
from flowsql_core.secrets.shown import options_in
from flowsql_planner.catalog.memory import missing_object

FORMAT_VERSION = 1
_DATABASE = "database.json"


class FileCatalog:
    """Databases, tables, views and functions below one folder, which is made if it is missing."""

    def __init__(self, name: str, path: str, default_database: str = "default") -> None:
        self.name = name
        self.default_database = default_database
        self._root = Path(path.removeprefix("file://"))
        if self.database(default_database) is None:
            self.create_database(default_database, CatalogDatabase())

    @staticmethod
    def is_made(path: str, default_database: str) -> bool:
        """Whether opening the catalog writes nothing."""
        return (Path(path.removeprefix("file://")) / _escaped(default_database) / _DATABASE).exists()

    # Databases

    def databases(self) -> list[str]:
        """Names, sorted."""
        return sorted(unquote(file.parent.name) for file in self._root.glob(f"*/{_DATABASE}"))

    def database(self, name: str) -> CatalogDatabase | None:
        """One database."""
        found = _read(self._folder(name) / _DATABASE)
        return None if found is None else _as(CatalogDatabase, found)

    def create_database(self, name: str, database: CatalogDatabase) -> None:
        """Add a database."""
        if self.database(name) is not None:
            raise BindError("database-exists", f"Database {name} already exists in Catalog {self.name}.")
        _write(self._folder(name) / _DATABASE, {"object": to_json(database)})

    def alter_database(self, name: str, database: CatalogDatabase) -> None:
        """Replace a database's comment and properties."""
        self._existing(name)
        _write(self._folder(name) / _DATABASE, {"object": to_json(database)})

    def drop_database(self, name: str) -> None:
        """Remove a database without tables and views; its functions go with it."""
        if self.objects(name):
            raise BindError("database-not-empty", f"Database {name} in catalog {self.name} is not empty.")
        shutil.rmtree(self._folder(name))

    # Tables and views

    def objects(self, database: str) -> dict[str, CatalogObject]:
        """Tables and views by name."""
        self._existing(database)
        return {name: from_json(form["object"]) for name, form in self._forms(database, "tables")}

    def get(self, database: str, name: str) -> CatalogObject | None:
        """One table or view; None too when the database is missing."""
        form = _read(self._file(database, "tables", name))
        if form is None:
            return None
        found: CatalogObject = from_json(form["object"])
        return found

    def put(self, database: str, name: str, value: CatalogObject) -> None:
        """Add or replace a table or view; what else belongs to it stays."""
        self._existing(database)
        if isinstance(value, CatalogTable) and value.resource is not None:
            raise BindError("not-storable", f"Table {name} holds Python data: only a temporary table can.")
        hinted = options_in(value.expanded_query) if isinstance(value, CatalogView) else ()
        refuse_plain_secrets((*value.options, *hinted), f"'{name}'", f"a file of catalog '{self.name}'")
        file = self._file(database, "tables", name)
        _write(file, {**(_read(file) or {}), "object": to_json(value)})

    def drop(self, database: str, name: str) -> None:
        """Remove a table or view."""
        file = self._file(database, "tables", name)
        if not file.is_file():
            raise missing_object(f"{database}.{name}", self.name)
        file.unlink()

    def details(self, database: str, name: str) -> TableDetails:
        """Partitions and statistics of a table."""
        form = _read(self._file(database, "tables", name)) or {}
        return _as(TableDetails, {"object": form["details"]}) if "details" in form else TableDetails()

    def put_details(self, database: str, name: str, details: TableDetails) -> None:
        """Replace them."""
        file = self._file(database, "tables", name)
        _write(file, {**(_read(file) or {}), "details": to_json(details)})

    # Functions

    def functions(self, database: str) -> dict[str, CatalogFunction]:
        """User functions by name."""
        return {name: _as(CatalogFunction, form) for name, form in self._forms(database, "functions")}

    def put_function(self, database: str, name: str, function: CatalogFunction) -> None:
        """Add or replace a function."""
        self._existing(database)
        _write(self._file(database, "functions", name), {"object": to_json(function)})

    def drop_function(self, database: str, name: str) -> None:
        """Remove a function."""
        self._file(database, "functions", name).unlink()

    # Files

    def _existing(self, database: str) -> None:
        if not (self._folder(database) / _DATABASE).is_file():
            raise BindError("database-not-found", f"Database {database} does not exist in Catalog {self.name}.")

    def _folder(self, database: str) -> Path:
        return self._root / _escaped(database)

    def _file(self, database: str, kind: str, name: str) -> Path:
        return self._folder(database) / kind / f"{_escaped(name)}.json"

    def _forms(self, database: str, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for file in sorted((self._folder(database) / kind).glob("*.json")):
            form = _read(file)
            if form is not None:
                yield unquote(file.name.removesuffix(".json")), form


def _escaped(name: str) -> str:
    """A name as a file name: no separators, and no ``.`` or ``..``."""
    return quote(name, safe=" ").replace(".", "%2E")


def _as(cls: type[Any], form: dict[str, Any]) -> Any:
    found = from_json(form["object"])
    if not isinstance(found, cls):
        raise BindError("bad-json-form", f"The stored form is a {type(found).__name__}, not a {cls.__name__}.")
    return found


def _read(file: Path) -> dict[str, Any] | None:
    try:
        form: dict[str, Any] = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise ConnectorError("catalog-file", f"Cannot read the catalog file '{file}': {error}") from error
    version = form.get("version")
    if version != FORMAT_VERSION:
        raise ConnectorError(
            "catalog-file", f"The catalog file '{file}' is of version {version}, not {FORMAT_VERSION}."
        )
    return form


def _write(file: Path, form: dict[str, Any]) -> None:
    """Readers see the old file or the new one."""
    text = json.dumps({**form, "version": FORMAT_VERSION}, ensure_ascii=False, indent=2)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.with_name(f".{file.name}.{os.getpid()}")
        scratch.write_text(text, encoding="utf-8")
        os.replace(scratch, file)
    except OSError as error:
        raise ConnectorError("catalog-file", f"Cannot write the catalog file '{file}': {error.strerror}") from error
