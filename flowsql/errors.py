"""The exceptions that FlowSQL raises, for programs that catch them: one family below :class:`FlowSqlError`.

Each has a stable ``code``, a ``message`` and, where known, a ``hint`` and a place in the statement; ``render()`` gives
the whole report. PyFlink's names (``TableException``, those of catalogs) are in :mod:`flowsql.util.exceptions`.
"""

from __future__ import annotations

from flowsql_core.errors import BindError as BindError
from flowsql_core.errors import ConnectorError as ConnectorError
from flowsql_core.errors import ExecutionError as ExecutionError
from flowsql_core.errors import FlowSqlError as FlowSqlError
from flowsql_core.errors import InternalError as InternalError
from flowsql_core.errors import NotSupportedYetError as NotSupportedYetError
from flowsql_core.errors import ParseError as ParseError
from flowsql_core.errors import PlanError as PlanError
