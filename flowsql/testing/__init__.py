"""Tests of SQL: ``flowsql test`` for files, :class:`SqlTest` for programs. See ``docs/testing.md``."""

from flowsql.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, {"SqlTest": "flowsql.testing.sql_test"})
