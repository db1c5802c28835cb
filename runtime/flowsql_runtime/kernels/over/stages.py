"""When rows of row time are answered: which watermark reaches them, and which of them come too late for their key."""

from __future__ import annotations

from flowsql_compute.compiler.declare import device, kernel


@device
def _reaches(levels, time):
    """The first level at or above a time."""
    low = 0
    high = len(levels)
    while low < high:
        middle = (low + high) // 2
        if levels[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(
    "int64(int64[::1], int32[::1], int32[::1], int64, int64[::1], int64, int64[::1], int64[::1], int64[::1],"
    " int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int64[::1], int32[::1])"
)
def stages(
    times, arrivals, keys, waited, levels, width, last, cleanup, timer_times, timer_keys, heads, links, fires, epochs,
    clears, made_times, made_keys
):  # fmt: skip
    """Play the rows and watermarks of a batch in their order.

    Args:
        times, keys: of rows (n,): the first ``waited`` ones are in state and due, the others come with the batch.
        arrivals: how many watermarks of the batch came before each row.
        levels: watermarks (m,), rising.
        width: of the frame in milliseconds, -1 for frames of rows, whose keys are never cleared.
        last: by key: the latest time that was answered or looked at; a row must be later. 0 at first.
        cleanup: by key: from when its state is dropped; 0 for none.
        timer_times, timer_keys: times at or before the last watermark at which keys are looked at.
        heads, links: working memory, (m,) and (2 n + timers,).
        fires: (n,): which watermark answers each row: m if none does yet, -1 for a late row.
        epochs: (n,): how often the key had been cleared before the row was answered; ``clears``: in all, by key.
        made_times, made_keys: times above the last watermark at which keys are to be looked at.

    Returns:
        How many of these there are.
    """
    n = len(times)
    m = len(levels)
    timers = len(timer_times)
    made = 0
    fresh = 0
    for j in range(m):
        heads[j] = -1
    for i in range(timers):
        j = _reaches(levels, timer_times[i])
        links[n + i] = heads[j]
        heads[j] = n + i
    for i in range(waited):
        j = _reaches(levels, times[i])
        fires[i] = j
        links[i] = heads[j]
        heads[j] = i
    i = waited
    for j in range(m + 1):
        while i < n and arrivals[i] <= j:
            key = keys[i]
            if times[i] <= last[key]:
                fires[i] = -1
                i += 1
                continue
            fire = max(j, _reaches(levels, times[i]))
            fires[i] = fire
            if fire < m:
                links[i] = heads[fire]
                heads[fire] = i
            if width >= 0 and (cleanup[key] == 0 or cleanup[key] < times[i] + width + 1):
                due = times[i] + width + width // 2 + 1
                cleanup[key] = due
                fire = max(j, _reaches(levels, due))
                if fire < m:
                    # What is looked at within the batch stands behind the timers of the state.
                    at = n + timers + fresh
                    made_times[len(made_times) - 1 - fresh] = due
                    made_keys[len(made_keys) - 1 - fresh] = key
                    links[at] = heads[fire]
                    heads[fire] = at
                    fresh += 1
                else:
                    made_times[made] = due
                    made_keys[made] = key
                    made += 1
            i += 1
        if j == m:
            break
        at = heads[j]
        while at >= 0:
            if at < n:
                key = keys[at]
                time = times[at]
                epochs[at] = clears[key]
            elif at < n + timers:
                key = timer_keys[at - n]
                time = timer_times[at - n]
            else:
                place = len(made_times) - 1 - (at - n - timers)
                key = made_keys[place]
                time = made_times[place]
            if time > last[key]:
                last[key] = time
            at = links[at]
        at = heads[j]
        while at >= 0:
            if at >= n:
                if at < n + timers:
                    key = timer_keys[at - n]
                    time = timer_times[at - n]
                else:
                    place = len(made_times) - 1 - (at - n - timers)
                    key = made_keys[place]
                    time = made_times[place]
                if cleanup[key] != 0 and cleanup[key] <= time:
                    cleanup[key] = 0
                    last[key] = 0
                    clears[key] += 1
            at = links[at]
    return made
