"""Tables of both lakes for tests, and their rows as the lakes' own libraries read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flowsql_core.graph.specs import TableSpec
from tests.connectors.tables import table_of

KINDS = ("iceberg", "delta")


class Lake:
    """A lake in a folder, with tables of one kind."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder

    @property
    def options(self) -> dict[str, str]:
        """Of a table ``t`` without its name."""
        if self.kind == "delta":
            return {"connector": "delta", "table-path": str(self.folder / "t")}
        return {
            "connector": "iceberg",
            "catalog-name": "c",
            "catalog-type": "sql",
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"file://{self.folder}",
            "catalog-database": "d",
            "catalog-table": "t",
        }

    @property
    def clause(self) -> str:
        """The options as SQL."""
        return ", ".join(f"'{key}' = '{value}'" for key, value in self.options.items())

    def table(self, ddl: str, partition_keys: tuple[str, ...] = (), **options: str) -> TableSpec:
        """A declaration of ``t``; in names of options ``__`` is a dot and ``_`` a dash."""
        named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
        return table_of(ddl, {**self.options, **named}, partition_keys)

    def opened(self) -> Any:
        """The library's table."""
        if self.kind == "delta":
            from deltalake import DeltaTable

            return DeltaTable(self.folder / "t")
        from pyiceberg.catalog import load_catalog

        options = self.options
        catalog = load_catalog("c", type="sql", uri=options["uri"], warehouse=options["warehouse"])
        return catalog.load_table("d.t")

    def arrow(self) -> Any:
        """All rows, as the library reads them."""
        table = self.opened()
        return table.to_pyarrow_table() if self.kind == "delta" else table.scan().to_arrow()

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """All rows, sorted; of some columns."""
        found = self.arrow()
        chosen = found.select(list(columns)) if columns else found
        return sorted(zip(*(column.to_pylist() for column in chosen.columns), strict=True), key=repr)

    def commits(self) -> int:
        """Snapshots, or versions behind the one that made the table."""
        table = self.opened()
        return int(table.version()) if self.kind == "delta" else len(table.snapshots())

    def data_files(self) -> list[Path]:
        """All that lie in the folder, counted by a commit or not."""
        return sorted(self.folder.rglob("*.parquet"))
