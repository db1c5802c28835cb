"""``OutputTag``, under the name of PyFlink's module."""

from __future__ import annotations

from flowsql_core.stream.output_tag import OutputTag

__all__ = ["OutputTag"]
