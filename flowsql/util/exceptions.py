"""The exceptions that programs catch, under PyFlink's names: each is the base of every error of FlowSQL, or one of a
:class:`~flowsql.table.catalog.Catalog`.

Which error it is says ``error.code``. SQL raises the same errors under their codes, not as classes of their own.
"""

from __future__ import annotations

from flowsql_core.errors import BindError, FlowSqlError

TableException = FlowSqlError
#: There is no Java; what PyFlink raises for errors of Flink.
JavaException = FlowSqlError


class CatalogException(BindError):  # noqa: N818 - PyFlink's name
    """A catalog refuses what it is asked for."""


class DatabaseAlreadyExistException(CatalogException):
    """The database is there already."""


class DatabaseNotEmptyException(CatalogException):
    """The database has tables, views or functions."""


class DatabaseNotExistException(CatalogException):
    """There is no such database."""


class FunctionAlreadyExistException(CatalogException):
    """The function is there already."""


class FunctionNotExistException(CatalogException):
    """There is no such function."""


class ModelAlreadyExistException(CatalogException):
    """The model is there already."""


class ModelNotExistException(CatalogException):
    """There is no such model."""


class PartitionAlreadyExistsException(CatalogException):
    """The partition is there already."""


class PartitionNotExistException(CatalogException):
    """There is no such partition."""


class PartitionSpecInvalidException(CatalogException):
    """The values do not name a partition of the table."""


class TableAlreadyExistException(CatalogException):
    """The table or view is there already."""


class TableNotExistException(CatalogException):
    """There is no such table or view."""


class TableNotPartitionedException(CatalogException):
    """The table has no partition keys."""
