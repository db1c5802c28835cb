"""Texts of rows in an order, put together: each is that of the row before it, a separator and the row's own text."""

from __future__ import annotations

from flowsql_compute.compiler.declare import kernel
from flowsql_compute.kernels.memory import copy_bytes


@kernel(
    "int64(int32[::1], int64[::1], uint8[::1], int64[::1], int64, int64[::1], int64[::1], int32[::1], int64[::1],"
    " int64, int64[::1])"
)
def link_texts(rows, befores, known, lengths, separator, node_of, parents, sources, sizes, used, results):
    """Play events of rows; a text is a node, which points to the one that it goes on from. Node 0 is no text.

    A row that goes on from the same node as before keeps its own, and empty texts without a separator add no node:
    behind a row that adds nothing, all nodes stay as they are, and no text has to be compared.

    Args:
        rows, befores: of each event: the row, and that before it, whose text it goes on from: -1 none; -2: the row's
            text stays.
        known, lengths: by row: whether it has a text of its own, and bytes of it.
        separator: bytes between two texts.
        node_of: by row, the node of its text.
        parents, sources, sizes: by node: the one before it, the row whose own text ends it, bytes of the whole.
        used: nodes that there are.
        results: (2m,), the row's node before and after each event.

    Returns:
        Nodes that there are now.
    """
    for i in range(len(rows)):
        row = rows[i]
        results[2 * i] = node_of[row]
        before = befores[i]
        if before >= -1:
            node = node_of[before] if before >= 0 else 0
            if known[row] and separator == 0 and sizes[node] == 0:
                # What begins with an empty text is the row's own text.
                node = 0
            if known[row] and (node == 0 or lengths[row] + separator > 0):
                own = node_of[row]
                if own == 0 or sources[own] != row or parents[own] != node:
                    own = used
                    parents[own] = node
                    sources[own] = row
                    sizes[own] = lengths[row]
                    if node:
                        sizes[own] += sizes[node] + separator
                    used += 1
                node = own
            node_of[row] = node
        results[2 * i + 1] = node_of[row]
    return used


@kernel(
    "void(int64[::1], int64[::1], int32[::1], int64[::1], int64[::1], uint8[::1], uint8[::1], int64[::1], uint8[::1])"
)
def write_texts(nodes, parents, sources, starts, lengths, data, separator, offsets, out):
    """Write the texts of nodes, from their ends on.

    Args:
        nodes, parents, sources: as of :func:`link_texts`.
        starts, lengths, data: of the rows' own texts: where each begins in ``data``.
        offsets: where the text of each node begins in ``out``, (m + 1,).
    """
    gap = len(separator)
    for i in range(len(nodes)):
        at = offsets[i + 1]
        node = nodes[i]
        while node:
            row = sources[node]
            at -= lengths[row]
            copy_bytes(out, at, data, starts[row], lengths[row])
            node = parents[node]
            if node and gap:
                at -= gap
                copy_bytes(out, at, separator, 0, gap)
