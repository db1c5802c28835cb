"""No module imports itself through others: not at the top of its file, not inside of a function."""

from __future__ import annotations

from pathlib import Path

from .module_graph import circles, module_graph
from .packages import PACKAGES


def test_no_circles() -> None:
    assert [sorted(circle) for circle in circles(module_graph(PACKAGES))] == []


def package(folder: Path, **modules: str) -> Path:
    root = folder / "shop"
    root.mkdir()
    for name, text in {"__init__": "", **modules}.items():
        (root / f"{name}.py").write_text(text)
    return root


def test_imports_inside_of_functions_count(tmp_path: Path) -> None:
    root = package(
        tmp_path,
        orders="from shop import prices\n",
        prices="def price():\n    from shop.taxes import tax\n    return tax()\n",
        taxes="class Tax:\n    def of(self):\n        import shop.orders\n",
        customers="import shop.orders\n",
    )
    assert circles(module_graph([root])) == [frozenset({"shop.orders", "shop.prices", "shop.taxes"})]


def test_relative_imports_count(tmp_path: Path) -> None:
    root = package(tmp_path, orders="from . import prices\n", prices="from .orders import order\n")
    assert circles(module_graph([root])) == [frozenset({"shop.orders", "shop.prices"})]


def test_imports_for_type_checkers_do_not_count(tmp_path: Path) -> None:
    head = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shop.orders import Order\n"
    root = package(tmp_path, orders="from shop.prices import price\n", prices=head)
    assert circles(module_graph([root])) == []


def test_several_circles_are_told_apart() -> None:
    graph = {name: frozenset(targets) for name, targets in {"a": "bd", "b": "a", "c": "ad", "d": "e", "e": "d"}.items()}
    assert sorted(map(sorted, circles(graph))) == [["a", "b"], ["d", "e"]]
