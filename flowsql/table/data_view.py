"""``ListView`` and ``MapView`` under the name of PyFlink's module."""

from __future__ import annotations

from flowsql_core.data_view import DataView as DataView
from flowsql_core.data_view import ListView as ListView
from flowsql_core.data_view import MapView as MapView
