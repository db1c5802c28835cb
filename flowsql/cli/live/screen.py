"""The screen of ``flowsql top``: running jobs line by line, and the operators of one of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Static

from flowsql.cli.live.board import (
    JOB_TITLES,
    NOTHING,
    OPERATOR_TITLES,
    JobNow,
    Observer,
    job_texts,
    operator_texts,
)
from flowsql.jobs.everywhere import act_on
from flowsql.table.values.tableau import fitted, text_width
from flowsql_core.errors import FlowSqlError, InternalError

_KEYS: Final = "Q Quit   Up/Down Select   Left/Right Sort by   R Reverse   C Cancel job"
JOBS_KEYS: Final = f"{_KEYS}   Enter Open job"
OPERATORS_KEYS: Final = f"{_KEYS}   Escape All jobs"

#: Widths of columns behind the first one, which takes what is left.
_JOB_WIDTHS: Final = (8, 10, 11, 9, 10, 8, 19, 10)
_OPERATOR_WIDTHS: Final = (3, 9, 10, 4, 4, 7, 19, 8, 10)
#: Digits of an id that are shown; any beginning names a job where one is asked for.
_ID_DIGITS: Final = 8
#: Width of the first column at least.
_LEAST: Final = 12


class Sure(ModalScreen[bool]):
    """A question; Y answers yes, and N, Enter, Escape, Q and Ctrl-C answer no."""

    DEFAULT_CSS = "Sure { align: center bottom; background: transparent; } Sure Static { dock: bottom; height: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,Y", "answer(True)", show=False),
        Binding("n,N,escape,enter,q,Q,ctrl+c", "answer(False)", show=False, priority=True),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question."""
        yield Static(Text(f"{self._question} (Y/N)", "reverse bold"))

    def action_answer(self, answer: bool) -> None:
        """Y or N was pressed."""
        self.dismiss(answer)


class Top(App[None]):
    """Shows jobs until the user has enough.

    Args:
        job_id: the one job to show; None: all, of which one can be opened.
        interval_s: between two looks.

    Attributes:
        failure: why nothing can be shown.
        ended: the one job, if it had ended when the screen was left.
    """

    ENABLE_COMMAND_PALETTE = False
    DEFAULT_CSS = """
    #title { height: 1; text-align: center; text-style: bold; }
    #status { height: 1; }
    #body { height: 1fr; }
    #keys { height: 1; text-style: reverse; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,Q", "quit", show=False),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("up,w,W,k", "move(-1)", show=False),
        Binding("down,s,S,j", "move(1)", show=False),
        Binding("left,a,A", "sort(-1)", show=False),
        Binding("right,d,D", "sort(1)", show=False),
        Binding("r,R", "reverse", show=False),
        Binding("enter,o,O", "open", show=False),
        Binding("escape,backspace,b,B", "close", show=False),
        Binding("c,C", "cancel", show=False),
    ]

    def __init__(self, job_id: str | None, interval_s: float) -> None:
        super().__init__()
        self._only = job_id
        self._opened = job_id
        self._interval_s = interval_s
        self._observer = Observer(job_id)
        self._jobs: list[JobNow] = []
        #: The opened job once it is gone from among those that run.
        self._last: JobNow | None = None
        self._trouble = ""
        self._stop = threading.Event()
        self._looked = 0
        self._drawn = 0
        self._selected = 0
        #: By view (jobs, operators) the column that rows are sorted by, and whether the largest comes last. None: as
        #: they come: the newest job first, operators in the order of the plan.
        self._sorting: list[int | None] = [None, None]
        self._is_reversed = [False, False]
        self.failure: FlowSqlError | None = None

    @property
    def ended(self) -> JobNow | None:
        """The one job, if it is over."""
        if self._only is None or not self._jobs:
            return None
        return self._jobs[0] if self._jobs[0].info.ended_ms is not None else None

    def compose(self) -> ComposeResult:
        """Title, status, rows, keys."""
        yield Static(id="title", markup=False)
        yield Static(id="status", markup=False)
        yield Static(id="body", markup=False)
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        """Begin to look."""
        threading.Thread(target=self._look, name="top", daemon=True).start()
        self.set_interval(0.05, self._tick)

    def on_unmount(self) -> None:
        """Look no more."""
        self._stop.set()

    def on_resize(self, event: Resize) -> None:
        """As many rows as there is room for."""
        self._draw()

    def _look(self) -> None:
        while not self._stop.is_set():
            try:
                jobs = self._observer.look()
                self._trouble = "; ".join(map(str, self._observer.troubles))
                opened = next((job for job in jobs if job.info.id == self._opened), None)
                # Nothing is known any more of what a job did that has ended: what was shown last stays.
                if opened is not None and opened.info.ended_ms is None:
                    self._last = opened
                self._jobs = jobs
            except FlowSqlError as error:
                if self._last is None:
                    self.failure = error
                    return
                # Its process is gone: what was seen last stays, and why it goes no further.
                self._trouble = str(error)
            except Exception as error:
                self.failure = InternalError(f"{type(error).__name__}: {error}")
                return
            self._looked += 1
            self._stop.wait(self._interval_s)

    def _tick(self) -> None:
        if self.failure is not None:
            self.exit()
        elif self._looked != self._drawn:
            self._drawn = self._looked
            self._draw()

    # Keys

    def action_move(self, step: int) -> None:
        """Select the row above or below."""
        self._selected = min(max(self._selected + step, 0), max(len(self._rows()) - 1, 0))
        self._draw()

    def action_sort(self, step: int) -> None:
        """Sort by the next column, or the one before; before the first one as rows come."""
        view = self._view()
        count = len(OPERATOR_TITLES if view else JOB_TITLES)
        now = self._sorting[view]
        wanted = (-1 if now is None else now) + step
        self._sorting[view] = None if wanted in (-1, count) else (count - 1 if wanted < -1 else wanted)
        self._draw()

    def action_reverse(self) -> None:
        """The other way round."""
        self._is_reversed[self._view()] ^= True
        self._draw()

    def action_open(self) -> None:
        """Show the operators of the selected job."""
        job = self._selected_job()
        if self._opened is None and job is not None:
            self._last, self._opened, self._selected = job, job.info.id, 0
            self._draw()

    def action_close(self) -> None:
        """Back to all jobs."""
        if self._only is None and self._opened is not None:
            self._opened, self._last, self._selected = None, None, 0
            self._draw()

    def action_cancel(self) -> None:
        """Ask, then cancel the job."""
        job = self._selected_job()
        if job is None or job.info.ended_ms is not None:
            return
        job_id = job.info.id

        def answered(yes: bool | None) -> None:
            if yes:
                threading.Thread(target=self._cancel, args=(job_id,), name="top-cancel", daemon=True).start()

        self.push_screen(Sure(f"Cancel job {job_id[:_ID_DIGITS]}, {job.info.name}?"), answered)

    def _cancel(self, job_id: str) -> None:
        try:
            act_on("cancel", job_id)
            told = f"Cancelling job {job_id[:_ID_DIGITS]}."
        except FlowSqlError as error:
            told = str(error)
        self.call_from_thread(self.notify, told)

    # Drawing

    def _view(self) -> int:
        """0: jobs, 1: operators of one."""
        return 0 if self._opened is None else 1

    def _selected_job(self) -> JobNow | None:
        if self._opened is not None:
            return self._opened_job()
        order = self._order(self._job_keys())
        return self._jobs[order[min(self._selected, len(order) - 1)]] if order else None

    def _opened_job(self) -> JobNow | None:
        return next((job for job in self._jobs if job.info.id == self._opened), self._last)

    def _rows(self) -> list[tuple[str, ...]]:
        """Texts of all rows in their order."""
        if self._opened is None:
            texts = [(name, job_id[:_ID_DIGITS], *others) for name, job_id, *others in map(job_texts, self._jobs)]
            return [texts[place] for place in self._order(self._job_keys())]
        job = self._last or self._opened_job()
        if job is None:
            return []
        # Whole seconds of watermarks are enough where they change all the time.
        texts = [tuple(text[:19] if at == 7 else text for at, text in enumerate(row)) for row in operator_texts(job)]
        return [texts[place] for place in self._order(_operator_keys(job))]

    def _job_keys(self) -> list[tuple[object, ...]]:
        return [
            (
                job.info.name,
                job.info.id,
                job.info.status,
                job.uptime_ms,
                job.in_per_second,
                job.out_per_second,
                job.info.restarts,
                job.checkpoints.get("lastCheckpointDuration"),
                job.state_bytes,
            )
            for job in self._jobs
        ]

    def _order(self, keys: Sequence[tuple[object, ...]]) -> list[int]:
        """Places of rows, sorted: names, and operators by the plan, as they rise; numbers the largest first.

        What is not known comes last.
        """
        view = self._view()
        at, is_reversed = self._sorting[view], self._is_reversed[view]
        if at is None:
            order = list(range(len(keys)))
            return order[::-1] if is_reversed else order
        known = [place for place, key in enumerate(keys) if key[at] is not None]
        largest_first = at > 0 and any(not isinstance(keys[place][at], str) for place in known)
        known.sort(key=lambda place: keys[place][at], reverse=largest_first != is_reversed)  # type: ignore[arg-type,return-value]
        return known + [place for place, key in enumerate(keys) if key[at] is None]

    def _draw(self) -> None:
        if not self.is_running:
            return
        view = self._view()
        titles = OPERATOR_TITLES if view else JOB_TITLES
        self.query_one("#title", Static).update(self._title())
        self.query_one("#status", Static).update(self._status())
        self.query_one("#keys", Static).update(OPERATORS_KEYS if view else JOBS_KEYS)
        rows = self._rows()
        self._selected = min(self._selected, max(len(rows) - 1, 0))
        room = max(self.size.height - 4, 1)
        first = max(0, self._selected - room + 1)
        head = Text()
        for place, title in enumerate(self._cells(titles)):
            head.append(title, "bold underline reverse" if place == self._sorting[view] else "bold underline")
            head.append(" ")
        lines = [head]
        for place, row in enumerate(rows[first : first + room], first):
            lines.append(Text(" ".join(self._cells(row)), "reverse" if place == self._selected else ""))
        for line in lines:
            line.truncate(self.size.width, overflow="crop")
        if not rows and self._looked:
            lines.append(Text("No running jobs." if self._opened is None else "Its tasks are not seen here."))
        self.query_one("#body", Static).update(Text("\n").join(lines))

    def _cells(self, texts: Sequence[str]) -> list[str]:
        widths = _OPERATOR_WIDTHS if self._view() else _JOB_WIDTHS
        left = max(self.size.width - sum(widths) - len(widths), _LEAST)
        # The end of a job's name says which table it writes, the beginning of an operator's what it does.
        head = _cut(texts[0], left) if self._view() else _cut(texts[0][::-1], left)[::-1]
        return [head + " " * (left - text_width(head)), *map(fitted, map(_cut, texts[1:], widths), widths)]

    def _title(self) -> str:
        job = self._opened_job()
        if self._opened is None:
            return f"Running jobs: {len(self._jobs)}"
        return "" if job is None else f"{job.info.name} ({job.info.id})"

    def _status(self) -> str:
        moment = time.strftime("%H:%M:%S")
        parts = [f"Refresh: {self._interval_s:g} s", f"Updated: {moment}"]
        job = None if self._opened is None else self._opened_job()
        if job is not None:
            cells = dict(zip(JOB_TITLES, job_texts(job), strict=True))
            names = ("uptime", "rows/s in", "rows/s out", "restarts", "checkpoint", "state size")
            parts = [job.info.status, *(f"{name} {cells[name]}" for name in names if cells[name] != NOTHING)]
            if job.info.ended_ms is not None:
                parts = [f"Job has ended: {job.info.status}", f"uptime {cells['uptime']}"]
            elif all(one.info.id != self._opened for one in self._jobs):
                parts = ["Job has ended, or its process"]
        return "   ".join([*parts, *([self._trouble] if self._trouble else [])])


def show_top(job_id: str | None, interval_s: float) -> JobNow | None:
    """Show jobs, or one, until the user leaves; the one job, if it had ended by then.

    Raises:
        FlowSqlError: nothing can be shown.
    """
    screen = Top(job_id, interval_s)
    screen.run()
    if screen.failure is not None:
        raise screen.failure
    return screen.ended


def _operator_keys(job: JobNow) -> list[tuple[object, ...]]:
    return [
        (
            one.operator.id,
            vertex.vertex.parallelism,
            one.in_per_second,
            one.out_per_second,
            *((None, None, None) if (mean := vertex.mean) is None else (mean.busy, mean.idle, mean.back_pressured)),
            one.watermark_ms,
            one.lag_ms(job.now_ms),
            one.state_bytes,
        )
        for vertex in job.vertices
        for one in vertex.operators
    ]


def _cut(text: str, width: int) -> str:
    """As much of a text as there is room for."""
    if text_width(text) <= width:
        return text
    while text_width(text) > width - 1:
        text = text[:-1]
    return f"{text}…"
