"""Hidden files that a dead attempt of a job left behind: nobody will ever commit them."""

from __future__ import annotations

import os
from collections.abc import Set

from flowsql_connectors.filesystem.files import escape_path_name
from flowsql_connectors.filesystem.names import PartNames
from flowsql_connectors.filesystem.stores.store import PartStore


def remove_leftovers(
    store: PartStore, names: PartNames, lineages: Set[str], living: Set[str], kept: Set[str]
) -> list[str]:
    """Remove the hidden parts of some lineages.

    Args:
        store: the table's folder, searched with its partitions.
        names: of the sink's parts.
        lineages: whose parts; those of other jobs stay.
        living: runs of the writers that write now: theirs stay.
        kept: paths that stay, whoever made them.

    Returns:
        What was removed.
    """
    escaped = {escape_path_name(lineage) for lineage in lineages}
    removed = []
    for path in store.walk():
        made_by = names.writer_of_hidden(os.path.basename(path))
        if made_by is None or made_by[0] in living or made_by[1] not in escaped:
            continue
        if path not in kept:
            store.remove(path)
            removed.append(path)
    return removed
