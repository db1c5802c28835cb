"""The exceptions that programs catch, under PyFlink's names: each is the base of every error of FlowSQL.

Which error it is says ``error.code``; PyFlink's classes for single errors of catalogs do not exist.
"""

from __future__ import annotations

from flowsql_core.errors import FlowSqlError

__all__ = ["JavaException", "TableException"]

TableException = FlowSqlError
#: There is no Java; what PyFlink raises for errors of Flink.
JavaException = FlowSqlError
