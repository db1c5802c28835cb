"""Process table functions that the cut tests call: state of every kind, timers, several tables, rows in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from flowsql.common import Row, RowKind
from flowsql.table import ListView, MapView
from flowsql.table.changelog_mode import ChangelogMode
from flowsql.table.process_function import (
    ArgumentHint,
    ArgumentTrait,
    ChangelogContext,
    Context,
    OnTimerContext,
    ProcessTableFunction,
    StateHint,
    process_table_function,
)

_SET = ArgumentTrait.SET_SEMANTIC_TABLE


@dataclass
class Visits:
    """What is kept of a visitor."""

    count: int = 0
    last: str | None = None
    tags: dict[str, int] = field(default_factory=dict)


@process_table_function(result_type="ROW<said STRING, seen BIGINT>")
class Visiting(ProcessTableFunction):
    """Counts visits; asks after a minute without one, and forgets the visitor after five."""

    def eval(
        self,
        context: Context,
        visits: Annotated[Visits, StateHint()],
        numbers: ListView[int],
        pages: MapView[str, int],
        visit: Annotated[Row, ArgumentHint(_SET, ArgumentTrait.REQUIRE_ON_TIME)],
        minutes: int = 5,
    ):
        """A visit."""
        visits.count += 1
        visits.last = visit.tag
        visits.tags[visit.tag] = visits.tags.get(visit.tag, 0) + 1
        numbers.add(visit.id)
        before = pages[visit.tag] if pages.contains(visit.tag) else 0
        pages[visit.tag] = before + visit.id
        time = context.time_context(int)
        time.register_on_time("ask", time.time() + 7_000)
        time.register_on_time("forget", time.time() + minutes * 10_000)
        time.register_on_time(time.time() // 20_000 * 20_000 + 20_000)
        if visit.n == 9:
            time.clear_timer("ask")
        if visit.n == 8:
            numbers.clear()
            del pages[visit.tag]
        if visit.n == 7:
            context.clear_state("visits")
        if visit.n == 6:
            context.clear_all_timers()
        yield f"{visit.tag} {sorted(visits.tags.items())}", visits.count

    def on_timer(self, context: OnTimerContext, visits: Visits, numbers: ListView[int], pages: MapView[str, int]):
        """Nobody came for a while."""
        name = context.current_timer()
        yield f"{name} {visits.last} {sum(numbers)} {sorted(pages.items())}", visits.count
        if name == "forget":
            context.clear_all()


@dataclass
class Best:
    """The highest price."""

    price: float = 0.0
    orders: int = 0


@process_table_function(result_type="STRING")
def beside(
    best: Annotated[Best, StateHint(ttl="3 days")],
    clicks: Annotated[Row, ArgumentHint(_SET, ArgumentTrait.OPTIONAL_PARTITION_BY)],
    sales: Annotated[Row, ArgumentHint(_SET, ArgumentTrait.OPTIONAL_PARTITION_BY, ArgumentTrait.SUPPORT_UPDATES)],
):
    """Two tables, one of which updates."""
    if clicks is not None:
        best.price = max(best.price, float(clicks.price))
        return None
    best.orders += 1 if sales.get_row_kind().value in (0, 2) else -1
    return f"{sales.get_row_kind().name} {sales.c} {best.orders}"


@process_table_function(result_type="ROW<id BIGINT, price DOUBLE>", changelog_mode=ChangelogMode.upsert())
def newest(best: Annotated[Best, StateHint()], click: Annotated[Row, ArgumentHint(_SET)]):
    """Upserts: the last row of a partition; every fifth takes it away by the key alone."""
    best.orders += 1
    if best.orders % 5 == 0:
        return Row.of_kind(RowKind.DELETE, None, None)
    kind = RowKind.INSERT if best.orders % 5 == 1 else RowKind.UPDATE_AFTER
    return Row.of_kind(kind, click.id, click.price)


@process_table_function(result_type="STRING")
def told(
    best: Annotated[Best, StateHint()],
    change: Annotated[Row, ArgumentHint(_SET, ArgumentTrait.SUPPORT_UPDATES)],
):
    """Changes as text, numbered."""
    best.orders += 1
    return f"{change.get_row_kind().name} {change.id} {change.price} {best.orders}"


def as_required(context: ChangelogContext) -> ChangelogMode:
    """Upserts where they suffice."""
    required = context.get_required_changelog_mode()
    return ChangelogMode.all() if required.contains(RowKind.UPDATE_BEFORE) else ChangelogMode.upsert(False)


@process_table_function(result_type="ROW<n BIGINT>", changelog_mode=as_required)
def counted_up(context: Context, best: Annotated[Best, StateHint()], click: Annotated[Row, ArgumentHint(_SET)]):
    """How many rows a partition has, in the changes that the consumer takes."""
    kind = RowKind.UPDATE_AFTER if best.orders else RowKind.INSERT
    if best.orders and context.get_changelog_mode().contains(RowKind.UPDATE_BEFORE):
        yield Row.of_kind(RowKind.UPDATE_BEFORE, best.orders)
    best.orders += 1
    yield Row.of_kind(kind, best.orders)


@process_table_function(result_type="ROW<rank_ BIGINT>")
def numbered(
    seen: Annotated[ListView[int], StateHint(ttl="1 h")],
    click: Annotated[Row, ArgumentHint(_SET, ArgumentTrait.OPTIONAL_PARTITION_BY, ArgumentTrait.PASS_COLUMNS_THROUGH)],
):
    """Rows in the order of their times, numbered."""
    seen.add(click.id)
    return len(seen.get())
