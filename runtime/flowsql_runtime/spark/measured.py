"""What Spark counted while it ran a query, node by node of the plan that it took, as volumes of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from flowsql_core.record import record
from flowsql_runtime.metrics.volumes import Volumes

#: Spark's metrics that are looked at, by the names that its operators give them.
ROWS: Final = "numOutputRows"
PYTHON_ROWS: Final = "pythonNumRowsReceived"
FILES_BYTES: Final = "filesSize"
SHUFFLED_ROWS: Final = "shuffleRecordsWritten"
SHUFFLED_BYTES: Final = "shuffleBytesWritten"
SPILLED_BYTES: Final = "spillSize"
LOOKED_AT: Final = (ROWS, PYTHON_ROWS, FILES_BYTES, SHUFFLED_ROWS, SHUFFLED_BYTES, SPILLED_BYTES)
#: Rows that Spark keeps between two queries.
KEPT: Final = "InMemoryTableScan"
#: Tasks of FlowSQL: they read, take rows further or write.
_TASKS: Final = "MapInArrow"
#: Leaves that no table stands behind.
_NO_TABLE: Final = ("Scan OneRowRelation",)
#: The numbers of parts that tasks read by themselves: a range, or one that Spark does not know the size of.
_NUMBERS: Final = ("Range", "Scan ExistingRDD")


@record
class PlanNode:
    """An operator of a plan that has run, with what it counted."""

    name: str
    counts: Mapping[str, int]
    inputs: tuple[PlanNode, ...] = ()


def volumes_of(plans: Sequence[PlanNode]) -> Volumes:
    """What the queries read, shuffled and spilled; ``bytes_read`` of files that Spark read by itself.

    Rows, and bytes of files, are None where a plan reads rows that Spark kept, and does not say where it had them from.
    """
    nodes = list(_every(plans))
    unseen = any(node.name == KEPT and not node.inputs for node in nodes)
    return Volumes(
        rows_read=None if unseen else sum(map(_rows_read, plans)),
        bytes_read=None if unseen else _total(nodes, FILES_BYTES),
        rows_shuffled=_total(nodes, SHUFFLED_ROWS),
        bytes_shuffled=_total(nodes, SHUFFLED_BYTES),
        bytes_spilled=_total(nodes, SPILLED_BYTES),
    )


def _every(plans: Iterable[PlanNode]) -> Iterator[PlanNode]:
    for plan in plans:
        yield plan
        yield from _every(plan.inputs)


def _total(nodes: Iterable[PlanNode], name: str) -> int:
    return sum(node.counts.get(name, 0) for node in nodes)


def _rows_read(node: PlanNode) -> int:
    if node.name == _TASKS and _reads_numbers(node):
        # Tasks of FlowSQL that read: a row of theirs is one of the table.
        return node.counts.get(PYTHON_ROWS, 0)
    if node.inputs:
        return sum(map(_rows_read, node.inputs))
    return 0 if node.name.strip() in _NO_TABLE else node.counts.get(ROWS, 0)


def _reads_numbers(node: PlanNode) -> bool:
    while len(node.inputs) == 1:
        (node,) = node.inputs
        if node.name == _TASKS:
            return False
    return not node.inputs and node.name.strip() in _NUMBERS


def of_java(plans: Iterable[Any], folder: str, identity: Callable[[Any], int]) -> list[PlanNode]:
    """Plans of queries that have run, from the objects of Java that Spark made of them. What several of them share
    stands in the first.

    Args:
        folder: of files through which the program hands rows to Spark: they are no table's.
        identity: a number of an object of Java that no other has.
    """
    walk = _Walk(folder, identity)
    found = (walk.node(plan) for plan in plans)
    return [node for node in found if node is not None]


class _Walk:
    """Over plans of Java, each of whose nodes is counted once."""

    def __init__(self, folder: str, identity: Callable[[Any], int]) -> None:
        self._folder = folder
        self._identity = identity
        self._seen: set[int] = set()

    def node(self, plan: Any) -> PlanNode | None:
        """A node with what stands below it; None where it was counted before."""
        name, number = str(plan.nodeName()), self._identity(plan)
        if number in self._seen or name.startswith("Reused"):
            return None
        self._seen.add(number)
        metrics = plan.metrics()
        counts = {key: int(metrics.apply(key).value()) for key in LOOKED_AT if metrics.contains(key)}
        kind = str(plan.getClass().getSimpleName())
        if kind == "FileSourceScanExec" and self._folder in str(plan.relation().location().rootPaths()):
            counts.pop(FILES_BYTES, None)
        below = _below(plan, kind)
        made = map(self.node, below)
        found = tuple(node for node in made if node is not None)
        # What stands elsewhere is counted there; a node without inputs would be a table.
        return PlanNode(name, counts, found or tuple(PlanNode("elsewhere", {}) for _ in below[:1]))


def _below(plan: Any, kind: str) -> list[Any]:
    if kind == "AdaptiveSparkPlanExec":
        return [plan.executedPlan()]
    if kind.endswith("QueryStageExec"):
        return [plan.plan()]
    if kind == "InMemoryTableScanExec":
        return [plan.relation().cachedPlan()]
    return [*_scala(plan.children()), *_scala(plan.subqueries())]


def _scala(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]


def of_connect(metrics: Any) -> PlanNode:
    """The same from what a Connect server told (``pyspark.sql.metrics.CollectedMetrics``)."""
    root, nodes = metrics.extract_graph()

    def made(number: int) -> PlanNode:
        node = nodes[number]
        counts = {each.name: int(each.value) for each in node.metrics if each.name in LOOKED_AT}
        # The root is told as an input of its own.
        return PlanNode(node.name, counts, tuple(made(one) for one in node.children if one != number))

    return made(root)
