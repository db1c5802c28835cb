"""Operators that wait until time has come, and what holds it back."""

from __future__ import annotations

from flowsql_core.element import MAX_WATERMARK, MIN_WATERMARK
from flowsql_core.graph.specs import WatermarkAssignerSpec
from flowsql_core.record import record
from flowsql_runtime.diagnosis.reasons.base import Explain, Finding, Reason, tables_text
from flowsql_runtime.diagnosis.snapshot import JobNow, OperatorNow, SubtaskNow
from flowsql_runtime.diagnosis.words import moment_text, operator_text, span_text, split_text
from flowsql_runtime.metrics.told import AssignerState, SourceState, Waiting

_IDLE_TIMEOUT = "'table.exec.source.idle-timeout' lets time go on without it"


@record
class _Holder:
    """The source that is furthest behind, in one subtask, and whether others are ahead of it."""

    assigner: OperatorNow
    subtask: SubtaskNow
    state: AssignerState
    is_behind: bool


class TimeHasNotCome(Reason):
    """A window is not over, or rows wait for those that may come before them."""

    holds_later = True

    def of(self, job: JobNow, operator: OperatorNow, explain: Explain) -> Finding | None:
        """Of what keeps windows or rows."""
        kept = [(found, one) for one in operator.subtasks if (found := one.tells(Waiting)) is not None]
        if not kept:
            return None
        waiting, subtask = min(kept, key=lambda each: each[0].due_ms)
        before = job.before(operator.node.id)
        if job.reads and _is_bounded(before):
            # It is still being read, and comes to its end.
            return None
        what = _what(waiting, operator)
        if waiting.by_clock:
            return self.finding(operator, f"{what} waits for the clock")
        holder = _holder(before)
        if holder is None:
            return self.finding(operator, f"{what}; all its sources are idle, and no row moves time on", "idle")
        reached = subtask.input_watermark_ms
        if operator.node.number_of_inputs > 1:
            reached = holder.subtask.output_watermark_ms
        held, *key = _held(before, holder)
        if reached == MIN_WATERMARK:
            return self.finding(operator, f"{what}; there is no watermark yet: {held}", *key)
        return self.finding(operator, f"{what}; the watermark is {moment_text(reached, waiting.zone)}: {held}", *key)


def _what(waiting: Waiting, operator: OperatorNow) -> str:
    if waiting.what == "row":
        return (
            f"the first row that {operator_text(operator.node)} keeps waits for a watermark of "
            f"{moment_text(waiting.due_ms)}"
        )
    bounds = (
        f"that ends at {moment_text(waiting.end_ms)}"
        if waiting.start_ms is None
        else f"[{span_text(waiting.start_ms, waiting.end_ms)})"
    )
    text = f"the {waiting.what} {bounds} of {operator_text(operator.node)}"
    return text if waiting.by_clock else f"{text} waits for a watermark of {moment_text(waiting.end_ms)}"


def _is_bounded(job: JobNow) -> bool:
    states = [one.tells(SourceState) for source in job.sources() for one in source.subtasks if not one.is_over]
    return all(state is not None and state.bounded for state in states)


def _holder(before: JobNow) -> _Holder | None:
    found: list[tuple[int, OperatorNow, SubtaskNow, AssignerState]] = []
    for operator in before.operators.values():
        if isinstance(operator.node.spec, WatermarkAssignerSpec):
            for one in operator.subtasks:
                state = one.tells(AssignerState) or AssignerState(False, (), (), operator.node.spec.idle_timeout_ms)
                if not one.is_over and not state.idle and one.output_watermark_ms != MAX_WATERMARK:
                    found.append((one.output_watermark_ms, operator, one, state))
    if not found:
        return None
    lowest, assigner, subtask, state = min(found, key=lambda each: (each[0], each[2].rows_in > 0))
    return _Holder(assigner, subtask, state, any(level > lowest for level, *_ in found))


def _held(before: JobNow, holder: _Holder) -> tuple[str, object, object]:
    """What holds the watermark back, and what tells it apart."""
    table = tables_text(before, holder.assigner)
    of_all = len(holder.assigner.subtasks)
    where = table if of_all == 1 else f"{table} in subtask {holder.subtask.number + 1} of {of_all}"
    key = (holder.assigner.node.id, holder.subtask.number)
    hint = "" if holder.state.idle_timeout_ms else f"; {_IDLE_TIMEOUT}"
    if not holder.subtask.rows_in:
        return f"{where} has given no row yet{hint if holder.is_behind else ''}", key, "none"
    state = holder.state
    if state.not_begun:
        splits = split_text(state.not_begun[0])
        others = len(state.not_begun) - 1
        more = f" and {others:,} other{'s' * (others > 1)}" if others else ""
        # A file has rows, sooner or later; a partition of a topic may never have one.
        hint = "" if _is_bounded(before) else hint
        return f"no row of {splits}{more} of {where} has been read yet{hint}", key, state.not_begun[0]
    if len(state.by_split) > 1:
        split, level = min(state.by_split, key=lambda each: each[1])
        assert split is not None
        return f"{split_text(split)} of {where} stands at {moment_text(level)}", key, split
    if holder.is_behind:
        return f"{where} is behind the others{hint}", key, "behind"
    return f"only further rows of {where} move it on", key, "rows"
