"""PyFlink's place for ``EnvironmentSettings``, which stands in ``settings``."""

from __future__ import annotations

from flowsql.table.settings import EnvironmentSettings as EnvironmentSettings
