"""EXPLAIN: Flink's sections over logical and physical plans, and what FlowSQL decided beyond them.

The trees show operators, keys and changelog modes as Flink does; the first section is FlowSQL's own logical plan under
Flink's names (it is not Calcite's text).
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from flowsql_planner.explain.logical_tree import logical_lines
from flowsql_planner.logical.nodes import Rel
from flowsql_planner.physical.nodes import Calc, Exchange, Physical
from flowsql_planner.physical.nodes.bounded import GroupWindowAggregate

AST_TITLE = "== Abstract Syntax Tree =="
PHYSICAL_TITLE = "== Optimized Physical Plan =="
ADVICE_TITLE = "== Optimized Physical Plan With Advice =="
EXECUTION_TITLE = "== Optimized Execution Plan =="
NOTES_TITLE = "== FlowSQL Execution =="
JSON_TITLE = "== Physical Execution Plan =="
CHAINING_TITLE = "== FlowSQL Chaining =="


class Detail(enum.Enum):
    """What EXPLAIN adds. The first four are Flink's."""

    ESTIMATED_COST = "ESTIMATED_COST"
    CHANGELOG_MODE = "CHANGELOG_MODE"
    JSON_EXECUTION_PLAN = "JSON_EXECUTION_PLAN"
    PLAN_ADVICE = "PLAN_ADVICE"
    CHAINING = "CHAINING"


#: What a tree shows behind a node's line: (node, line number within the node) -> text.
Suffix = Callable[[Physical, int], str]


def render_logical(roots: Sequence[Rel]) -> str:
    """The trees of the first section."""
    return "\n".join("\n".join(logical_lines(root)) + "\n" for root in roots)


def render_physical(
    roots: Sequence[Physical],
    *,
    infix: bool = False,
    changelog: bool = False,
    suffix: Suffix | None = None,
    advice: dict[int, list[int]] | None = None,
) -> str:
    """Trees in which every consumer shows its whole input."""
    printer = _TreePrinter(infix, changelog, suffix, advice or {}, {})
    return "\n".join("\n".join(printer.tree(root)) + "\n" for root in roots)


def render_execution(roots: Sequence[Physical]) -> str:
    """Trees in which a shared input is shown once, under ``reuse_id``.

    What several sinks share stands in front as a tree of its own; what one sink uses twice stands at its first use.
    """
    used: Counter[int] = Counter()
    by_root: dict[int, set[int]] = {}
    seen: set[int] = set()
    found: dict[int, Physical] = {}

    def count(node: Physical, root: int) -> None:
        used[id(node)] += 1
        by_root.setdefault(id(node), set()).add(root)
        found[id(node)] = node
        if id(node) in seen:
            _mark(node, root, by_root)
            return
        seen.add(id(node))
        for child in _shown_inputs(node):
            count(child, root)

    for index, root in enumerate(roots):
        count(root, index)
    numbers: dict[int, int] = {}
    shared = [key for key, uses in used.items() if uses > 1]
    across = [key for key in shared if len(by_root[key]) > 1]
    for key in (*across, *(key for key in shared if key not in across)):
        numbers[key] = len(numbers) + 1
    printer = _TreePrinter(True, False, None, {}, numbers)
    blocks = [found[key] for key in across if len(roots) > 1]
    texts = ["\n".join(printer.tree(node)) + "\n" for node in (*blocks, *roots)]
    return "\n".join(texts)


def _mark(node: Physical, root: int, by_root: dict[int, set[int]]) -> None:
    for child in _shown_inputs(node):
        if root not in by_root.setdefault(id(child), set()):
            by_root[id(child)].add(root)
            _mark(child, root, by_root)


def _shown_inputs(node: Physical) -> tuple[Physical, ...]:
    """Inputs below a node's own lines."""
    below = node.shown_inputs()
    if node.lines_show_exchange():
        below = tuple(child.inputs[0] if isinstance(child, Exchange) else child for child in below)
    return tuple(map(_shown, below))


def _shown(node: Physical) -> Physical:
    """A node, or what stands below where Flink plans none of its kind."""
    if isinstance(node, Calc) and isinstance(node.inputs[0], GroupWindowAggregate) and node.inputs[0].is_all_of(node):
        return node.inputs[0]
    return node


class _TreePrinter:
    def __init__(
        self,
        infix: bool,
        changelog: bool,
        suffix: Suffix | None,
        advice: dict[int, list[int]],
        numbers: dict[int, int],
    ) -> None:
        self._infix = infix
        self._changelog = changelog
        self._suffix = suffix
        self._advice = advice
        self._numbers = numbers
        self._printed: set[int] = set()

    def tree(self, node: Physical) -> Iterator[str]:
        """The lines of a node and of all below it."""
        node = _shown(node)
        number = self._numbers.get(id(node))
        if number is not None and id(node) in self._printed:
            yield f"Reused(reference_id=[{number}])"
            return
        self._printed.add(id(node))
        own = node.lines(self._infix)
        advice = self._advice.get(id(node), ())
        for position, line in enumerate(own):
            text = line.text(self._changelog, advice if position == 0 else ())
            if position == 0 and number is not None:
                text += f"(reuse_id=[{number}])"
            if self._suffix is not None:
                text += self._suffix(node, position)
            yield _nested(position, text)
        children = _shown_inputs(node)
        depth = len(own) - 1
        for index, child in enumerate(children):
            last = index == len(children) - 1
            for position, line_text in enumerate(self.tree(child)):
                lead = ("+- " if last else ":- ") if position == 0 else ("   " if last else ":  ")
                yield "   " * depth + lead + line_text


def _nested(depth: int, text: str) -> str:
    """A line that is the only child of the line before."""
    return text if depth == 0 else "   " * (depth - 1) + "+- " + text
