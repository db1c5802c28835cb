"""What lists of members are, one after the other, over a batch. Lists as of ``kernels/slot_lists.py``."""

from __future__ import annotations

from flowsql_compute.compiler.declare import device, kernel
from flowsql_runtime.kernels.row_list import COUNT, NEWER, NEWEST, OLDER, detach
from flowsql_runtime.kernels.slot_lists import link_newest


@kernel("int64(int32[::1], int8[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1])")
def number_versions(groups, changes, counts, latest, before, after, lengths):
    """Number what lists are over a batch: each group's list before it, then the list after each change.

    Args:
        groups: (n,), of the rows. ``changes``: (n,), 1 a member comes, -1 one goes, 0 neither.
        counts: by group, members before; after it at the end. ``latest``: by group, its own number.
        before, after: (n,), the version before and after each row.
        lengths: members of each version; those of groups are there.

    Returns:
        How many versions there are.
    """
    made = len(latest)
    for i in range(len(groups)):
        group = groups[i]
        before[i] = latest[group]
        if changes[i]:
            counts[group] += changes[i]
            lengths[made] = counts[group]
            latest[group] = made
            made += 1
        after[i] = latest[group]
    return made


@device(inline=True)
def _copy(group, links, ends, stop, members):
    member = ends[group, NEWEST]
    for place in range(ends[group, COUNT]):
        members[stop - 1 - place] = member
        member = links[member, OLDER]


@kernel(
    "void(int32[::1], int8[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[:,::1], int32[:,::1],"
    " int64[::1], int32[::1])"
)
def list_versions(groups, changes, entries, first_groups, first_entries, current, links, ends, offsets, members):
    """The members of each version of :func:`number_versions`: those held before are 0 .. m, row i brings m + i.

    Args:
        entries: (n,), which entry a row makes or takes away; an entry may be made anew.
        first_groups, first_entries: (m,), of the members held before, oldest first.
        current: by entry, room for its member. ``links``: (m + n, 2), ``ends``: by group (2), 0: room for lists.
        offsets: where each version starts in ``members``, and their end.
    """
    held = len(first_groups)
    for member in range(held):
        current[first_entries[member]] = member
        link_newest(member, first_groups[member], links, ends)
    version = len(ends)
    for group in range(version):
        _copy(group, links, ends, offsets[group + 1], members)
    for i in range(len(groups)):
        if changes[i] == 0:
            continue
        if changes[i] > 0:
            current[entries[i]] = held + i
            link_newest(held + i, groups[i], links, ends)
        else:
            detach(current[entries[i]], groups[i], links, ends)
        _copy(groups[i], links, ends, offsets[version + 1], members)
        version += 1


@kernel(
    "void(int32[::1], int8[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[:,::1], int32[:,::1],"
    " int32[::1], boolean, int32[::1])"
)
def end_versions(groups, changes, entries, first_groups, first_entries, current, links, ends, oldest, newest, members):
    """The newest or the oldest member of each version, -1 where it has none; as of :func:`list_versions`.

    Args:
        oldest: by group, room for its oldest member. ``newest``: which one is asked for.
    """
    held = len(first_groups)
    for member in range(held):
        group = first_groups[member]
        current[first_entries[member]] = member
        if ends[group, COUNT] == 0:
            oldest[group] = member
        link_newest(member, group, links, ends)
    version = len(ends)
    for group in range(version):
        members[group] = -1
        if ends[group, COUNT]:
            members[group] = ends[group, NEWEST] if newest else oldest[group]
    for i in range(len(groups)):
        if changes[i] == 0:
            continue
        group = groups[i]
        if changes[i] > 0:
            current[entries[i]] = held + i
            if ends[group, COUNT] == 0:
                oldest[group] = held + i
            link_newest(held + i, group, links, ends)
        else:
            member = current[entries[i]]
            if oldest[group] == member:
                oldest[group] = links[member, NEWER]
            detach(member, group, links, ends)
        members[version] = -1
        if ends[group, COUNT]:
            members[version] = ends[group, NEWEST] if newest else oldest[group]
        version += 1
