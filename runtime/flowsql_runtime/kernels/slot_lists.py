"""Lists of members by group, linked through flat arrays: put in, take out anywhere, walk.

``links`` int32 (members, 2): the member of the group before it, the one after it, -1 where there is none. ``ends``
int32 (groups, 2): newest member, members. So ``row_list.expand`` walks these lists, too.
"""

from __future__ import annotations

from flowsql_compute.compiler.declare import device, kernel
from flowsql_runtime.kernels.row_list import COUNT, NEWER, NEWEST, OLDER, detach


@device(inline=True)
def _join(member, group, links, ends):
    links[member, OLDER] = -1
    links[member, NEWER] = -1
    if ends[group, COUNT]:
        newest = ends[group, NEWEST]
        links[member, OLDER] = newest
        links[newest, NEWER] = member
    ends[group, NEWEST] = member
    ends[group, COUNT] += 1


@kernel("void(int32[::1], int32[::1], int32[:,::1], int32[:,::1])")
def link(members, groups, links, ends):
    """Members that are in no list become the newest of their groups, in order."""
    for i in range(len(members)):
        _join(members[i], groups[i], links, ends)


@kernel("void(int32[::1], int32[::1], int32[:,::1], int32[:,::1])")
def unlink(members, groups, links, ends):
    """Members leave their groups."""
    for i in range(len(members)):
        detach(members[i], groups[i], links, ends)


#: What ``stamps`` says of a member that is in no list.
ABSENT = -(2**63)


@kernel("void(int32[::1], int64[::1], int64[::1], int32[:,::1], int32[:,::1], int32[::1])")
def touch(members, times, stamps, links, ends, oldest):
    """Members become the newest of the one list, stamped with ``times``, which never fall; -1 takes no part.

    ``oldest`` (1,): the member at the other end, -1 in an empty list.
    """
    for i in range(len(members)):
        member = members[i]
        now = times[i]
        if member < 0 or stamps[member] == now:
            continue
        if stamps[member] != ABSENT:
            if oldest[0] == member:
                oldest[0] = links[member, NEWER]
            detach(member, 0, links, ends)
        _join(member, 0, links, ends)
        if oldest[0] < 0:
            oldest[0] = member
        stamps[member] = now


@kernel("void(int32[::1], int64[::1], int64[::1], int32[:,::1], int32[:,::1], int32[::1])")
def put_back(members, times, stamps, links, ends, oldest):
    """Members that are in no list, by rising ``times``, go into the list of :func:`touch` where their times belong."""
    newer = oldest[0]
    for i in range(len(members)):
        member = members[i]
        while newer >= 0 and stamps[newer] <= times[i]:
            newer = links[newer, NEWER]
        stamps[member] = times[i]
        if newer < 0:
            _join(member, 0, links, ends)
            if oldest[0] < 0:
                oldest[0] = member
            continue
        older = links[newer, OLDER]
        links[member, OLDER] = older
        links[member, NEWER] = newer
        links[newer, OLDER] = member
        if older >= 0:
            links[older, NEWER] = member
        else:
            oldest[0] = member
        ends[0, COUNT] += 1


@kernel("void(int32[::1], int64[::1], int32[:,::1], int32[:,::1], int32[::1])")
def forget(members, stamps, links, ends, oldest):
    """Members leave the list of :func:`touch`, if they are in it."""
    for i in range(len(members)):
        member = members[i]
        if stamps[member] == ABSENT:
            continue
        if oldest[0] == member:
            oldest[0] = links[member, NEWER]
        detach(member, 0, links, ends)
        stamps[member] = ABSENT


@kernel("int64(int64, int64[::1], int32[:,::1], int32[::1], int32[::1])")
def count_until(until, stamps, links, oldest, out):
    """The oldest members stamped at or before ``until``, into ``out``; stops where that is full. Returns how many."""
    found = 0
    member = oldest[0]
    while member >= 0 and found < len(out) and stamps[member] <= until:
        out[found] = member
        found += 1
        member = links[member, NEWER]
    return found


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
        _join(member, first_groups[member], links, ends)
    version = len(ends)
    for group in range(version):
        _copy(group, links, ends, offsets[group + 1], members)
    for i in range(len(groups)):
        if changes[i] == 0:
            continue
        if changes[i] > 0:
            current[entries[i]] = held + i
            _join(held + i, groups[i], links, ends)
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
        _join(member, group, links, ends)
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
            _join(held + i, group, links, ends)
        else:
            member = current[entries[i]]
            if oldest[group] == member:
                oldest[group] = links[member, NEWER]
            detach(member, group, links, ends)
        members[version] = -1
        if ends[group, COUNT]:
            members[version] = ends[group, NEWEST] if newest else oldest[group]
        version += 1
