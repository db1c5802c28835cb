"""Lists of members by group, linked through flat arrays: put in, take out anywhere, walk.

``links`` int32 (members, 2): the member of the group before it, the one after it, -1 where there is none. ``ends``
int32 (groups, 2): newest member, members. So ``row_list.expand`` walks these lists, too.
"""

from __future__ import annotations

from flowsql_compute.compiler.declare import device, kernel
from flowsql_runtime.kernels.row_list import COUNT, NEWER, NEWEST, OLDER, detach


@device(inline=True)
def link_newest(member, group, links, ends):
    """A member that is in no list becomes the newest of its group."""
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
        link_newest(members[i], groups[i], links, ends)


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
        link_newest(member, 0, links, ends)
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
            link_newest(member, 0, links, ends)
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
