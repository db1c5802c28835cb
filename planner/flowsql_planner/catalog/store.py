"""The catalog store: definitions of catalogs, in memory or as files that the next session finds again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote

from flowsql_core.config import Configuration, option
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.record import record
from flowsql_core.secrets.plain import refuse_plain_secrets
from flowsql_planner.catalog.schema import Options

KIND = option(
    "table.catalog-store.kind",
    str,
    "generic_in_memory",
    "Where the definitions of catalogs are kept: generic_in_memory, or file.",
)
PATH = option("table.catalog-store.file.path", str, "", "Folder of the catalog store of kind file.")


@record
class CatalogDescriptor:
    """A catalog as CREATE CATALOG defined it."""

    options: Options
    comment: str | None = None


class CatalogStore(Protocol):
    """Definitions of catalogs by name."""

    def names(self) -> list[str]:
        """Names, sorted."""
        ...

    def get(self, name: str) -> CatalogDescriptor | None:
        """One definition."""
        ...

    def put(self, name: str, descriptor: CatalogDescriptor) -> None:
        """Add or replace a definition."""
        ...

    def remove(self, name: str) -> None:
        """Forget a definition, if there is one."""
        ...


class MemoryCatalogStore:
    """Definitions that end with the session."""

    def __init__(self) -> None:
        self._known: dict[str, CatalogDescriptor] = {}

    def names(self) -> list[str]:
        """Names, sorted."""
        return sorted(self._known)

    def get(self, name: str) -> CatalogDescriptor | None:
        """One definition."""
        return self._known.get(name)

    def put(self, name: str, descriptor: CatalogDescriptor) -> None:
        """Add or replace a definition."""
        self._known[name] = descriptor

    def remove(self, name: str) -> None:
        """Forget a definition."""
        self._known.pop(name, None)


class FileCatalogStore:
    """One ``<name>.yaml`` a catalog, as Flink writes them: its options as a flat mapping.

    A comment stands under ``comment``, which is no option of any catalog.
    """

    def __init__(self, path: str) -> None:
        self._folder = Path(path.removeprefix("file://"))

    def names(self) -> list[str]:
        """Names, sorted."""
        return sorted(unquote(file.name.removesuffix(".yaml")) for file in self._folder.glob("*.yaml"))

    def get(self, name: str) -> CatalogDescriptor | None:
        """One definition."""
        import yaml

        file = self._file(name)
        try:
            content = yaml.safe_load(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, yaml.YAMLError) as error:
            raise ConnectorError("catalog-store", f"Cannot read the catalog store file '{file}': {error}") from error
        if not isinstance(content, dict):
            raise ConnectorError("catalog-store", f"The catalog store file '{file}' must hold keys and values.")
        options = {str(key): str(value) for key, value in content.items()}
        comment = options.pop("comment", None)
        return CatalogDescriptor(tuple(options.items()), comment)

    def put(self, name: str, descriptor: CatalogDescriptor) -> None:
        """Add or replace a definition."""
        import yaml

        refuse_plain_secrets(descriptor.options, f"catalog '{name}'", "a file of the catalog store")
        content = dict(descriptor.options)
        if descriptor.comment is not None:
            content["comment"] = descriptor.comment
        file = self._file(name)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            scratch = file.with_name(f".{file.name}.{os.getpid()}")
            scratch.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
            os.replace(scratch, file)
        except OSError as error:
            raise ConnectorError(
                "catalog-store", f"Cannot write the catalog store file '{file}': {error.strerror}"
            ) from error

    def remove(self, name: str) -> None:
        """Forget a definition."""
        self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self._folder / f"{quote(name, safe=' ').replace('.', '%2E')}.yaml"


def make_store(configuration: Configuration) -> CatalogStore:
    """The store that ``table.catalog-store.*`` asks for.

    Raises:
        BindError: an unknown kind, or no folder for kind ``file``.
    """
    kind = configuration.get(KIND)
    if kind == "generic_in_memory":
        return MemoryCatalogStore()
    if kind != "file":
        raise BindError(
            "catalog-store",
            f"Could not find any factory for identifier '{kind}' that implements a catalog store.",
            hint="table.catalog-store.kind is generic_in_memory or file",
        )
    path = configuration.get(PATH)
    if not path:
        raise BindError(
            "catalog-store",
            "One or more required options are missing.\nMissing required options are: path",
            hint=f"'{PATH.key}' is the folder of the store",
        )
    return FileCatalogStore(path)
