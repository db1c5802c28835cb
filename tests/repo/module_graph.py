"""Who imports whom, module by module: at the top of a file and inside of functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

Graph = Mapping[str, frozenset[str]]


def module_graph(packages: Sequence[Path]) -> dict[str, frozenset[str]]:
    """The modules of packages, each with those that it imports, wherever the import stands.

    Imports for type checkers alone never run and do not count. ``from package import name`` counts as an import of the
    module ``package.name`` where there is one, else of the package's ``__init__``.
    """
    files = {_module_name(path, package): path for package in packages for path in package.rglob("*.py")}
    return {
        name: frozenset(_imported(ast.parse(path.read_text()), name, path, files) - {name})
        for name, path in files.items()
    }


def circles(graph: Graph) -> list[frozenset[str]]:
    """The strongly connected components of more than one module.

    Source: Tarjan, Depth-first search and linear graph algorithms (1972), without recursion.
    """
    found: list[frozenset[str]] = []
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    stacked: set[str] = set()
    for root in graph:
        walk: list[tuple[str, Iterator[str]]] = []
        following: str | None = root if root not in index else None
        while following is not None or walk:
            if following is not None:
                index[following] = lowest[following] = len(index)
                stack.append(following)
                stacked.add(following)
                walk.append((following, iter(sorted(graph[following]))))
            module, targets = walk[-1]
            following = None
            for target in targets:
                if target not in index:
                    following = target
                    break
                if target in stacked:
                    lowest[module] = min(lowest[module], index[target])
            if following is not None:
                continue
            walk.pop()
            if walk:
                above = walk[-1][0]
                lowest[above] = min(lowest[above], lowest[module])
            if lowest[module] == index[module]:
                at = stack.index(module)
                component = frozenset(stack[at:])
                del stack[at:]
                stacked -= component
                if len(component) > 1:
                    found.append(component)
    return found


def _module_name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.AST, module: str, path: Path, files: Mapping[str, Path]) -> set[str]:
    found = set()
    for node in _running(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
                kept = package[: len(package) - node.level + 1]
                base = ".".join([*kept, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                found.add(full if full in files else base)
    return found & files.keys()


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one that run: all but the bodies of ``if TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            for other in child.orelse:
                yield other
                yield from _running(other)
        else:
            yield child
            yield from _running(child)
