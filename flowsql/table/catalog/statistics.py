"""What catalogs know of the values of columns, under the names of PyFlink and of the Java objects that it hands out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowsql_core import catalog as core
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.record import record


@record
class CatalogColumnStatisticsData:
    """One column: how many NULLs and distinct values, extremes of numbers, lengths of texts; None: not known.

    Getters have the names of Flink's ``CatalogColumnStatisticsDataLong``, ``...Double`` and ``...String``.
    """

    null_count: int | None = None
    ndv: int | None = None
    min: int | float | None = None
    max: int | float | None = None
    max_length: int | None = None
    avg_length: float | None = None

    def getNullCount(self) -> int | None:  # noqa: N802 - Flink's name
        """Rows whose value is NULL."""
        return self.null_count

    def getNdv(self) -> int | None:  # noqa: N802 - Flink's name
        """Distinct values."""
        return self.ndv

    def getMin(self) -> int | float | None:  # noqa: N802 - Flink's name
        """The smallest number."""
        return self.min

    def getMax(self) -> int | float | None:  # noqa: N802 - Flink's name
        """The greatest number."""
        return self.max

    def getMaxLength(self) -> int | None:  # noqa: N802 - Flink's name
        """Characters of the longest text."""
        return self.max_length

    def getAvgLength(self) -> float | None:  # noqa: N802 - Flink's name
        """Characters of a text, on average."""
        return self.avg_length


class CatalogColumnStatistics:
    """Columns by name; catalogs keep no properties of them."""

    def __init__(
        self,
        column_statistics_data: Mapping[str, CatalogColumnStatisticsData] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        if properties:
            raise NotSupportedYetError("properties of the statistics of columns", hint="leave them out")
        self._columns = dict(column_statistics_data or {})
        for name, data in self._columns.items():
            if not isinstance(data, CatalogColumnStatisticsData):
                raise TypeError(f"column '{name}': expected a CatalogColumnStatisticsData, got {type(data).__name__}")

    def get_column_statistics_data(self) -> dict[str, CatalogColumnStatisticsData]:
        """The columns of which something is known."""
        return dict(self._columns)

    def get_properties(self) -> dict[str, Any]:
        """None."""
        return {}

    def copy(self) -> CatalogColumnStatistics:
        """Another object of the same."""
        return CatalogColumnStatistics(self._columns)


def shown_columns(statistics: core.TableStatistics | None) -> CatalogColumnStatistics:
    """What is kept, as programs see it."""
    columns = () if statistics is None else statistics.columns
    return CatalogColumnStatistics(
        {
            name: CatalogColumnStatisticsData(
                found.nulls, found.distinct, found.smallest, found.greatest, found.longest, found.average_length
            )
            for name, found in columns
        }
    )


def with_columns(statistics: core.TableStatistics | None, columns: CatalogColumnStatistics) -> core.TableStatistics:
    """Statistics of a table with other columns; its number of rows stays."""
    kept = tuple(
        (name, core.ColumnStatistics(data.null_count, data.ndv, data.avg_length, data.max_length, data.max, data.min))
        for name, data in columns.get_column_statistics_data().items()
    )
    return core.TableStatistics(core.UNKNOWN_ROWS if statistics is None else statistics.rows, kept)


def with_rows(statistics: core.TableStatistics | None, rows: int) -> core.TableStatistics:
    """Statistics of a table with another number of rows; its columns stay."""
    return core.TableStatistics(rows, () if statistics is None else statistics.columns)
