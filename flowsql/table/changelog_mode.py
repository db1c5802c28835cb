"""``ChangelogMode``: the kinds of changes that a changelog holds, under the name of PyFlink's module."""

from __future__ import annotations

from flowsql_core import row


class ChangelogMode:
    """Makes what ``from_changelog_stream`` and ``to_changelog_stream`` take."""

    @staticmethod
    def insert_only() -> row.ChangelogMode:
        """Rows are added."""
        return row.INSERT_ONLY

    @staticmethod
    def upsert(key_only_deletes: bool = True) -> row.ChangelogMode:
        """Rows are put and taken away by their key: no row before an update.

        ``key_only_deletes``: a row that is taken away may have its key only, all else NULL.
        """
        return row.ChangelogMode(row.UPSERT.kinds, key_only_deletes)

    @staticmethod
    def all() -> row.ChangelogMode:
        """Every kind."""
        return row.ALL_CHANGES
