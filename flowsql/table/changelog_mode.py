"""The kinds of changes that a changelog holds."""

from __future__ import annotations

from flowsql_core.row import ChangelogMode as ChangelogMode
