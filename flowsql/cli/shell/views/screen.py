"""The screen of a view: a page of rows, Flink's keys, a row on its own, a search."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from flowsql.display.view_rows import Cells, ViewRows
from flowsql.table.values.tableau import fitted

#: Seconds between two looks at the rows, and how they are shown; None: only on demand.
REFRESH_INTERVALS: Final[tuple[tuple[float | None, str], ...]] = (
    (0.05, "Fastest"), (0.1, "100 ms"), (0.5, "500 ms"), (1.0, "1 s"), (5.0, "5 s"), (10.0, "10 s"), (60.0, "1 min"),
    (None, "-"),
)  # fmt: skip
DEFAULT_INTERVAL: Final = 3

_FIRST_KEYS: Final = "Q Quit   R Refresh   + Inc Refresh   - Dec Refresh   O Open Row   / Search\n"
_MOVES: Final = "W/S Row up/down   A/D Column left/right"
TABLE_KEYS: Final = f"{_FIRST_KEYS}G Goto Page   N Next Page   P Prev Page   L Last Page   {_MOVES}"
CHANGELOG_KEYS: Final = f"{_FIRST_KEYS}{_MOVES}"


class Question(ModalScreen[str]):
    """A line that asks for a text; Escape answers nothing."""

    DEFAULT_CSS = "Question { align: center bottom; background: transparent; } Question Input { dock: bottom; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss('')", show=False)]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The line."""
        yield Input(placeholder=self._question)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter answers."""
        self.dismiss(event.value)


class OneRow(ModalScreen[None]):
    """All columns of a row, whole, one below the other."""

    DEFAULT_CSS = "OneRow Static { width: 100%; height: 100%; overflow-y: auto; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, "dismiss", show=False) for key in ("q", "Q", "escape", "o", "O", "enter", "ctrl+c")
    ]

    def __init__(self, names: Sequence[str], cells: Cells) -> None:
        super().__init__()
        self._names = names
        self._cells = cells

    def compose(self) -> ComposeResult:
        """Names and values."""
        lines = [Text("Row Summary\n", "bold", justify="center")]
        for name, cell in zip(self._names, self._cells, strict=True):
            lines.append(Text.assemble((f"{name}\n", "bold"), f"  {cell}\n"))
        lines.append(Text("\nQ Back", "reverse"))
        yield Static(Text("\n").join(lines))


class View(App[None]):
    """Shows rows until the user has enough, or the query fails.

    Args:
        title: what stands on top.
        names: of the columns.
        widths: of the columns, in terminal cells.
        rows: what is shown; read in a thread.
        told: how far the query is, in a line.
        is_paged: whether there are pages; without them the newest rows are shown.
    """

    ENABLE_COMMAND_PALETTE = False
    DEFAULT_CSS = """
    #title { height: 1; text-align: center; text-style: bold; }
    #status, #progress { height: 1; }
    #body { height: 1fr; }
    #keys { height: 2; text-style: reverse; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,Q", "quit", show=False),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("r,R", "refresh_rows", show=False),
        Binding("plus,+", "interval(1)", show=False),
        Binding("minus,-", "interval(-1)", show=False),
        Binding("up,w,W", "move(-1)", show=False),
        Binding("down,s,S", "move(1)", show=False),
        Binding("left,a,A", "scroll_columns(-1)", show=False),
        Binding("right,d,D", "scroll_columns(1)", show=False),
        Binding("o,O,enter", "open_row", show=False),
        Binding("g,G", "go_to_page", show=False),
        Binding("n,N,pagedown", "page(1)", show=False),
        Binding("p,P,pageup", "page(-1)", show=False),
        Binding("l,L,end", "last_page", show=False),
        Binding("slash", "search", show=False),
    ]

    def __init__(
        self,
        title: str,
        names: Sequence[str],
        widths: Sequence[int],
        rows: ViewRows,
        told: Callable[[], str],
        is_paged: bool,
    ) -> None:
        super().__init__()
        self._heading = title
        self._told = told
        self._names = names
        self._widths = widths
        self._source = rows
        self._is_paged = is_paged
        self._rows: list[Cells] = []
        self._interval = DEFAULT_INTERVAL
        self._updated = time.time()
        #: The page that is shown, from 1; None: the last one, whichever that is.
        self._page: int | None = None
        self._selected = 0
        self._first_column = 0
        self._wanted = ""
        self._last_look = 0.0
        #: The last rows have been looked at.
        self._is_finished = False

    def compose(self) -> ComposeResult:
        """Title, status, rows, keys."""
        yield Static(self._heading, id="title")
        yield Static(id="progress", markup=False)
        yield Static(id="status", markup=False)
        yield Static(id="body", markup=False)
        yield Static(TABLE_KEYS if self._is_paged else CHANGELOG_KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        """Begin to read and to look."""
        threading.Thread(target=self._source.read, name="view-rows", daemon=True).start()
        self.set_interval(0.05, self._tick)

    def on_resize(self, event: Resize) -> None:
        """Pages are as long as the screen allows."""
        self._draw()

    def _tick(self) -> None:
        if self._source.failure is not None:
            self.exit()
            return
        seconds = REFRESH_INTERVALS[self._interval][0]
        now = time.monotonic()
        has_ended = self._source.is_complete and not self._is_finished
        if has_ended or (seconds is not None and now - self._last_look >= seconds):
            self.action_refresh_rows()

    # Keys

    def action_refresh_rows(self) -> None:
        """Look at the rows now."""
        self._last_look = time.monotonic()
        # Asked first: rows that come between the two questions are looked at once more.
        is_complete = self._source.is_complete
        self._rows = self._source.now()
        self._updated = time.time()
        if not self._is_finished:
            self._is_finished = is_complete
            self.query_one("#progress", Static).update(self._told() + (" complete" if self._is_finished else ""))
        self._draw()

    def action_interval(self, step: int) -> None:
        """Look less often, or more often."""
        self._interval = min(max(self._interval + step, 0), len(REFRESH_INTERVALS) - 1)
        self._draw()

    def action_move(self, step: int) -> None:
        """Select the row above or below."""
        self._selected = min(max(self._selected + step, 0), max(len(self._shown()) - 1, 0))
        self._draw()

    def action_scroll_columns(self, step: int) -> None:
        """Begin with the next column, or the one before."""
        self._first_column = min(max(self._first_column + step, 0), len(self._names) - 1)
        self._draw()

    def action_open_row(self) -> None:
        """Show the selected row on its own."""
        shown = self._shown()
        if shown:
            self.push_screen(OneRow(self._names, shown[min(self._selected, len(shown) - 1)]))

    def action_page(self, step: int) -> None:
        """The next page, or the one before."""
        if self._is_paged:
            self._turn_to((self._page or self._pages()) + step)

    def action_last_page(self) -> None:
        """The last page, also when there are more of them."""
        self._page = None
        self._draw()

    def action_go_to_page(self) -> None:
        """Ask for the number of a page."""
        if self._is_paged:
            self.push_screen(Question(f"Goto page (1 to {self._pages()})"), self._answered_page)

    def action_search(self) -> None:
        """Ask for a text, and go to the next row that has it."""
        again = f"Search for (Enter: '{self._wanted}' again)" if self._wanted else "Search for"
        self.push_screen(Question(again), self._find)

    def _answered_page(self, text: str | None) -> None:
        if text and text.strip().isdigit():
            self._turn_to(int(text))
        elif text:
            self.notify(f"'{text}' is no number of a page")

    def _turn_to(self, page: int) -> None:
        page = min(max(page, 1), self._pages())
        self._page = page
        self._selected = 0
        self._draw()

    def _find(self, text: str | None) -> None:
        self._wanted = text or self._wanted
        if not self._wanted:
            return
        begin = self._offset() + self._selected + 1
        places = [*range(begin, len(self._rows)), *range(min(begin, len(self._rows)))]
        lowered = self._wanted.lower()
        found = next((place for place in places if any(lowered in cell.lower() for cell in self._rows[place])), None)
        if found is None:
            self.notify(f"No row has '{self._wanted}'")
            return
        if self._is_paged:
            self._page = found // self._page_rows() + 1
        self._selected = found - self._offset()
        self._draw()

    # Drawing

    def _page_rows(self) -> int:
        """Rows on a page."""
        return max(self.size.height - 6, 1)

    def _pages(self) -> int:
        return max(-(-len(self._rows) // self._page_rows()), 1)

    def _offset(self) -> int:
        """The number of the first row that is shown."""
        if not self._is_paged:
            return max(len(self._rows) - self._page_rows(), 0)
        page = self._pages() if self._page is None else min(self._page, self._pages())
        return (page - 1) * self._page_rows()

    def _shown(self) -> list[Cells]:
        return self._rows[self._offset() : self._offset() + self._page_rows()]

    def _draw(self) -> None:
        if not self.is_running:
            return
        page = "Last" if self._page is None else str(self._page)
        moment = f"{time.strftime('%H:%M:%S', time.localtime(self._updated))}.{int(self._updated * 1000) % 1000:03}"
        pages = f"Page: {page} of {self._pages()}" if self._is_paged else f"Changes: {len(self._rows)}"
        status = f"Refresh: {REFRESH_INTERVALS[self._interval][1]}     {pages}     Updated: {moment}"
        self.query_one("#status", Static).update(status)
        shown = self._shown()
        self._selected = min(self._selected, max(len(shown) - 1, 0))
        body = Text(no_wrap=True, overflow="crop")
        body.append(f"{self._line(self._names)}\n", "bold underline")
        for place, cells in enumerate(shown):
            body.append(f"{self._line(cells)}\n", "reverse" if place == self._selected else "")
        self.query_one("#body", Static).update(body)

    def _line(self, cells: Sequence[str]) -> str:
        pairs = list(zip(cells, self._widths, strict=True))[self._first_column :]
        # A cell has one line here; the row on its own shows all of them.
        return " ".join(fitted(cell.replace("\n", " "), width) for cell, width in pairs)
