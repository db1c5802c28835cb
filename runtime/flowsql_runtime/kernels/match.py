"""Rows of keys walk through the states of a pattern: MATCH_RECOGNIZE.

Source: Flink, ``NFA`` and ``AfterMatchSkipStrategy``.
"""

from __future__ import annotations

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.stack import FAILS, HOLDS, run_program

#: State of a match that is complete.
FINAL = 0
#: Start of the run that no row has started yet.
NOT_STARTED = 2**31 - 1
#: A run: its first row, its state, and how many rows each variable has.
START, STATE, COUNTS = 0, 1, 2
#: Whether a variable's condition is that of every row, a truth value a row, a program, or asked elsewhere.
ALWAYS, BY_ROW, BY_PROGRAM, ELSEWHERE = 0, 1, 2, 3
#: Where a match lets the search go on.
TO_NEXT_ROW, PAST_LAST_ROW, TO_FIRST, TO_LAST = 0, 1, 2, 3
#: Columns of ``marks``: the row that is next, the watermark that is worked on, whether time has not reached it yet, the
#: key's place among those of that watermark, and whether the next row only waits for answers.
NEXT, FIRE, OPEN, RANK, RANK_ROW, ASKS = 0, 1, 2, 3, 4, 5
#: Places of ``progress``: the key, whether it is begun, its partial and waiting runs, runs and matches written; what is
#: told of a failure.
KEY, BEGUN, PARTIAL, WAITING, WRITTEN, FOUND, BLAMED_RUN, BLAMED = 0, 1, 2, 3, 4, 5, 6, 7
#: Answers of the kernel: all is done, more room is wanted, a condition fails, SKIP finds no row, or the match's start.
DONE, MORE_ROOM, CONDITION_FAILS, NO_SUCH_ROW, SAME_START = 0, 1, 2, 3, 4
#: Columns of a match before its run: key, time, and what it is sorted by.
MATCH_KEY, MATCH_TIME, MATCH_FIRE, MATCH_RANK, MATCH_ROW, MATCH_RUN = 0, 1, 2, 3, 4, 5
#: Behind every row.
_LAST_RANK = 2**31


@device
def _copy(source, at, target, to):
    for i in range(source.shape[1]):
        target[to, i] = source[at, i]


@device
def _add(heap, size, run, at):
    """Put a run in its place among ``size`` ones, as Java's ``PriorityQueue`` does: it may not be one of the heap."""
    place = size
    while place > 0 and run[at, START] < heap[(place - 1) >> 1, START]:
        _copy(heap, (place - 1) >> 1, heap, place)
        place = (place - 1) >> 1
    _copy(run, at, heap, place)


@device
def _sink(heap, size, place, run, at):
    """Put a run at a place, and those that start before it above."""
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and heap[child, START] > heap[child + 1, START]:
            child += 1
        if run[at, START] <= heap[child, START]:
            break
        _copy(heap, child, heap, place)
        place = child
    _copy(run, at, heap, place)


@device
def _keep_from(heap, size, start, spare):
    """Remove runs that start before a row; how many are left."""
    kept = 0
    for i in range(size):
        if heap[i, START] >= start:
            if kept < i:
                _copy(heap, i, heap, kept)
            kept += 1
    if kept < size:
        for i in range(kept // 2 - 1, -1, -1):
            _copy(heap, i, spare, 0)
            _sink(heap, kept, i, spare, 0)
    return kept


@device
def _goes_on_at(run, skip, variable):
    """The first row at which another match may start; below 0 where there is none."""
    if skip == TO_NEXT_ROW:
        return run[0, START] + 1
    first = run[0, START]
    before = run.shape[1] if skip == PAST_LAST_ROW else COUNTS + variable
    for v in range(COUNTS, before):
        first += run[0, v]
    if skip == PAST_LAST_ROW:
        return first
    count = run[0, COUNTS + variable]
    if count == 0:
        return -NO_SUCH_ROW
    if skip == TO_LAST:
        first += count - 1
    return -SAME_START if first == run[0, START] else first


@device
def _release(partial, waiting, spare, progress, marks, key, time, skip, skip_variable, found):
    """Matches that no older partial one can rule out leave; 0, or what is wrong."""
    while progress[WAITING] > 0 and waiting[0, START] <= partial[0, START]:
        # The first one comes out of the heap.
        match = progress[FOUND]
        _copy(waiting, 0, spare, 0)
        progress[WAITING] -= 1
        if progress[WAITING] > 0:
            _copy(waiting, progress[WAITING], spare, 1)
            _sink(waiting, progress[WAITING], 0, spare, 1)
        first = _goes_on_at(spare, skip, skip_variable)
        if first < 0:
            return -first
        found[match, MATCH_KEY] = key
        found[match, MATCH_TIME] = time
        found[match, MATCH_FIRE] = marks[key, FIRE]
        found[match, MATCH_RANK] = marks[key, RANK]
        found[match, MATCH_ROW] = marks[key, RANK_ROW]
        for i in range(spare.shape[1]):
            found[match, MATCH_RUN + i] = spare[0, i]
        progress[FOUND] += 1
        progress[PARTIAL] = _keep_from(partial, progress[PARTIAL], first, spare)
        progress[WAITING] = _keep_from(waiting, progress[WAITING], first, spare)
    return 0


@device
def _time_out(partial, spare, progress, rows, base, time, within):
    """Partial runs that took too long go; whether there were any."""
    late = 0
    for i in range(progress[PARTIAL]):
        start = partial[i, START]
        late += start != NOT_STARTED and time - rows[0, base + start] >= within
    if late == 0:
        return False
    kept = 0
    for i in range(progress[PARTIAL]):
        start = partial[i, START]
        if start == NOT_STARTED or time - rows[0, base + start] < within:
            _copy(partial, i, spare, 0)
            _add(partial, kept, spare, 0)
            kept += 1
    progress[PARTIAL] = kept
    return True


@device
def _level_of(levels, time):
    """The first watermark that reaches a time."""
    low = 0
    high = len(levels)
    while low < high:
        middle = (low + high) >> 1
        if levels[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@device
def _holds(
    asked, conditions, truths, ops, words, doubles, known, sums, counts, stack, reals, valid, answers, memo, partial,
    place, answer_at, base, here,
):  # fmt: skip
    """Whether the condition of a variable holds for a row and a partial run; it is remembered. ``FAILS``: see there."""
    if memo[asked] < 0:
        kind = conditions[asked, 0]
        if kind == BY_ROW:
            memo[asked] = truths[conditions[asked, 1], base + here]
        elif kind == BY_PROGRAM:
            memo[asked] = run_program(
                ops, conditions[asked, 1], conditions[asked, 2], words, doubles, known, sums, counts, partial, place,
                base, here, asked, stack, reals, valid,
            )  # fmt: skip
        elif kind == ELSEWHERE:
            memo[asked] = answers[conditions[asked, 1], answer_at]
        else:
            memo[asked] = 1
    return memo[asked]


@kernel(
    "int64(int64[:,::1], int64[:,::1], int64[::1], int32[::1], int32[:,::1], int32[::1], int32[::1], int32[::1],"
    " int32[::1], int64[:,::1], uint8[:,::1], int64[:,::1], int64[:,::1], float64[:,::1], uint8[:,::1], int64[:,::1],"
    " int64[:,::1], int64[::1], float64[::1], uint8[::1], uint8[:,::1], int8[::1], int64[::1], int64[:,::1],"
    " int64[::1], int32[:,::1], int32[:,::1], int32[:,::1], int32[:,::1], int32[:,::1], int32[:,::1], int32[:,::1],"
    " int32[::1], int64[:,::1], int64[::1])"
)
def walk(
    bounds, rows, levels, take_ends, takes, ending_ends, endings, set_ends, sets, conditions, truths, ops, words,
    doubles, known, sums, counts, stack, reals, valid, answers, memo, settings, marks, old_ends, old, partial,
    next_ones, waiting, complete, spare, written, owners, found, progress,
):  # fmt: skip
    """Take the rows of keys, in order, until no row is left, or the next one waits for answers.

    Args:
        bounds: (k, 2), where the rows of each key begin and end.
        rows: (3, n), time in ms, the watermark that lets it go, its place among all that come.
        levels: (l,), watermarks, rising; none in processing time.
        take_ends: (s + 1,), ends of each state's rows of ``takes``: variable, set of those that must not hold, state
            behind. ``ending_ends``, ``endings``: sets one of which must fail as a whole for a match to end in a state.
        set_ends, sets: the variables of each set.
        conditions: (v, 3), kind, then the row of ``truths``, or the begin and end of a program, or the row of
            ``answers``.
        truths: (t, n), 0 is not TRUE.
        ops, words, doubles, known, sums, counts, stack, reals, valid: see ``run_program``.
        answers: (a, r), conditions asked elsewhere, for the next row and each of the ``old`` runs.
        memo: (v,).
        settings: how a match skips, its variable, the longest time or -1, whether rows have times of their own,
            whether rows wait for answers.
        marks: (k, 6).
        old_ends, old: runs of each key before, in the order of their heaps: partial, then waiting ones.
        partial, next_ones, waiting, complete, spare: room for runs, (m, 2 + v) each.
        written, owners: get the runs of each key after, and the key.
        found: (f, 5 + 2 + v) gets matches.
        progress: (8,), see above; all 0 at first.
    """
    skip = settings[0]
    skip_variable = settings[1]
    within = settings[2]
    timed = settings[3] != 0
    asking = settings[4] != 0
    width = len(conditions)
    most = 1
    for state in range(len(take_ends) - 1):
        most = max(most, take_ends[state + 1] - take_ends[state])
    while progress[KEY] < len(bounds):
        key = progress[KEY]
        base = bounds[key, 0]
        size = bounds[key, 1] - base
        if progress[BEGUN] == 0:
            if old_ends[key + 1] - old_ends[key] > len(partial):
                return MORE_ROOM
            progress[PARTIAL] = 0
            progress[WAITING] = 0
            for i in range(old_ends[key], old_ends[key + 1]):
                if old[i, STATE] == FINAL:
                    _copy(old, i, waiting, progress[WAITING])
                    progress[WAITING] += 1
                else:
                    _copy(old, i, partial, progress[PARTIAL])
                    progress[PARTIAL] += 1
            progress[BEGUN] = 1
        while True:
            ready = progress[PARTIAL] * most + progress[PARTIAL] + 1
            if ready > len(partial) or ready + progress[WAITING] > len(waiting):
                return MORE_ROOM
            if progress[FOUND] + progress[WAITING] + ready > len(found):
                return MORE_ROOM
            if marks[key, ASKS] == 0:
                # Time advances: to the end of watermarks, to time-outs, to the row.
                here = marks[key, NEXT]
                is_row = here < size
                goal = rows[1, base + here] if is_row else len(levels)
                if marks[key, OPEN] and marks[key, FIRE] < goal:
                    marks[key, OPEN] = 0
                    time = levels[marks[key, FIRE]]
                    if within >= 0 and _time_out(partial, spare, progress, rows, base, time, within):
                        wrong = _release(
                            partial, waiting, spare, progress, marks, key, time, skip, skip_variable, found
                        )
                        if wrong:
                            return wrong
                    continue
                alarm = -1
                is_alarm = False
                if timed and within >= 0 and partial[0, START] != NOT_STARTED:
                    is_alarm = True
                    alarm = rows[0, base + partial[0, START]] + within
                    if len(levels) and alarm <= levels[len(levels) - 1]:
                        fire = _level_of(levels, alarm)
                        if fire < goal:
                            marks[key, FIRE] = fire
                            marks[key, RANK] = alarm
                            marks[key, RANK_ROW] = _LAST_RANK
                            time = levels[fire]
                            _time_out(partial, spare, progress, rows, base, time, within)
                            wrong = _release(
                                partial, waiting, spare, progress, marks, key, time, skip, skip_variable, found
                            )
                            if wrong:
                                return wrong
                            continue
                if not is_row:
                    break
                time = rows[0, base + here]
                if marks[key, OPEN] == 0 or marks[key, FIRE] != rows[1, base + here]:
                    marks[key, FIRE] = rows[1, base + here]
                    marks[key, OPEN] = 1 if len(levels) else 0
                    marks[key, RANK] = alarm if is_alarm and alarm < time else time
                    marks[key, RANK_ROW] = rows[2, base + here]
                if within >= 0 and _time_out(partial, spare, progress, rows, base, time, within):
                    wrong = _release(partial, waiting, spare, progress, marks, key, time, skip, skip_variable, found)
                    if wrong:
                        return wrong
                marks[key, ASKS] = 1
                if asking:
                    break
                # Releasing made room; what is behind needs no more than was asked for.
            marks[key, ASKS] = 0
            here = marks[key, NEXT]
            marks[key, NEXT] = here + 1
            row = base + here
            time = rows[0, row]
            made = 0
            ended = 0
            for place in range(progress[PARTIAL]):
                begins = partial[place, START] == NOT_STARTED
                if begins:
                    partial[place, START] = here
                for v in range(width):
                    memo[v] = -1
                state = partial[place, STATE]
                for t in range(take_ends[state], take_ends[state + 1]):
                    variable = takes[t, 0]
                    # The variable's own condition holds, none of the set does.
                    first = set_ends[takes[t, 1]] - 1
                    fits = True
                    for i in range(first, set_ends[takes[t, 1] + 1]):
                        asked = variable if i == first else sets[i]
                        answer = _holds(
                            asked, conditions, truths, ops, words, doubles, known, sums, counts, stack, reals, valid,
                            answers, memo, partial, place, old_ends[key] + place, base, here,
                        )  # fmt: skip
                        if answer == FAILS:
                            progress[BLAMED_RUN] = place
                            progress[BLAMED] = asked
                            return CONDITION_FAILS
                        fits = (answer == HOLDS) == (i == first)
                        if not fits:
                            break
                    if not fits:
                        continue
                    target = takes[t, 2]
                    ends = target == FINAL
                    for e in range(ending_ends[target], ending_ends[target + 1]):
                        if ends:
                            break
                        ends = True
                        for i in range(set_ends[endings[e]], set_ends[endings[e] + 1]):
                            answer = _holds(
                                sets[i], conditions, truths, ops, words, doubles, known, sums, counts, stack, reals,
                                valid, answers, memo, partial, place, old_ends[key] + place, base, here,
                            )  # fmt: skip
                            if answer == FAILS:
                                progress[BLAMED_RUN] = place
                                progress[BLAMED] = sets[i]
                                return CONDITION_FAILS
                            if answer == HOLDS:
                                ends = False
                                break
                    _copy(partial, place, spare, 0)
                    spare[0, COUNTS + variable] += 1
                    if target != FINAL:
                        spare[0, STATE] = target
                        _add(next_ones, made, spare, 0)
                        made += 1
                    if ends:
                        spare[0, STATE] = FINAL
                        _add(complete, ended, spare, 0)
                        ended += 1
                if begins:
                    partial[place, START] = NOT_STARTED
                    _copy(partial, place, spare, 0)
                    _add(next_ones, made, spare, 0)
                    made += 1
            for i in range(made):
                _copy(next_ones, i, partial, i)
            progress[PARTIAL] = made
            for i in range(ended):
                _add(waiting, progress[WAITING], complete, i)
                progress[WAITING] += 1
            wrong = _release(partial, waiting, spare, progress, marks, key, time, skip, skip_variable, found)
            if wrong:
                return wrong
        if progress[WRITTEN] + progress[PARTIAL] + progress[WAITING] > len(written):
            return MORE_ROOM
        for i in range(progress[PARTIAL]):
            _copy(partial, i, written, progress[WRITTEN])
            owners[progress[WRITTEN]] = key
            progress[WRITTEN] += 1
        for i in range(progress[WAITING]):
            _copy(waiting, i, written, progress[WRITTEN])
            owners[progress[WRITTEN]] = key
            progress[WRITTEN] += 1
        progress[KEY] += 1
        progress[BEGUN] = 0
    return DONE
