"""A sample for the parity runner: FlowSQL's own runtime, Spark and DuckDB give one table."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest


def load(name: str) -> ModuleType:
    """A module that stands beside this one."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


machine = load("spark_machine")
pytestmark = machine.ON_SPARK

TABLES = """
CREATE TABLE orders (id BIGINT, customer INT, qty INT, price DECIMAL(8, 2), channel STRING,
  placed TIMESTAMP(3), kg DOUBLE)
WITH ('connector' = 'filesystem', 'path' = '{folder}/orders.csv', 'format' = 'csv', 'csv.null-literal' = '');
CREATE TABLE customers (id INT, name STRING, since DATE)
WITH ('connector' = 'filesystem', 'path' = '{folder}/customers.csv', 'format' = 'csv', 'csv.null-literal' = '');
"""
QUERIES = """
SELECT channel, COUNT(*) AS n, SUM(qty) AS q, AVG(qty) AS a, SUM(price) AS p, AVG(price) AS ap, MIN(placed) AS lo,
  COUNT(DISTINCT customer) AS c, SUM(qty) FILTER (WHERE price > 50) AS f FROM orders GROUP BY channel;
SELECT c.name, o.id, o.price * o.qty AS total FROM orders o LEFT JOIN customers c ON o.customer = c.id AND o.qty > 3;
SELECT c.name, COUNT(o.id) AS n FROM customers c FULL JOIN orders o ON o.customer = c.id GROUP BY c.name;
SELECT channel, qty, COUNT(*) AS n FROM orders GROUP BY ROLLUP (channel, qty);
SELECT customer FROM orders UNION SELECT id FROM customers;
SELECT customer FROM orders INTERSECT ALL SELECT id FROM customers;
SELECT id FROM customers EXCEPT SELECT customer FROM orders;
SELECT id, RANK() OVER (PARTITION BY channel ORDER BY price DESC, id) AS r,
  SUM(qty) OVER (PARTITION BY channel ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS s,
  LAG(price) OVER (ORDER BY id) AS l FROM orders;
SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.qty > 7);
SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers WHERE id > 4);
SELECT UPPER(channel) AS u, EXTRACT(HOUR FROM placed) AS h, SUM(kg) AS kg FROM orders GROUP BY UPPER(channel),
  EXTRACT(HOUR FROM placed) HAVING COUNT(*) > 1;
SELECT id, price FROM orders WHERE price > (SELECT AVG(price) FROM orders) AND qty BETWEEN 2 AND 8;
"""


def make_files(folder: Path) -> None:
    draw = random.Random(4)
    orders = [
        f"{i},{draw.choice(['', draw.randrange(9)])},{draw.choice(['', draw.randrange(10)])},"
        f"{draw.randrange(10000) / 100},"
        f"{draw.choice(['', 'web', 'app', 'Ärger'])},2024-03-01 {draw.randrange(24):02d}:00:0{draw.randrange(9)}.500,"
        f"{draw.choice(['', draw.randrange(100) / 4])}"
        for i in range(300)
    ]
    (folder / "orders.csv").write_text("\n".join(orders) + "\n", encoding="utf-8")
    customers = [f"{i},name {i % 5},{draw.choice(['', '2020-02-29'])}" for i in range(7)]
    (folder / "customers.csv").write_text("\n".join(customers) + "\n", encoding="utf-8")


@pytest.mark.nightly
def test_three_homes_give_one_table(tmp_path: Path) -> None:
    machine.hurry()
    make_files(tmp_path)
    parity = load("parity")
    answered = {"local": 0, "spark": 0, "duckdb": 0}
    for answers in parity.Parity().run(TABLES.format(folder=tmp_path) + QUERIES):
        assert not answers.differences(), answers.sql
        assert "spark" in answers.rows, answers.refusals
        for home in answers.rows:
            answered[home] += 1
    assert answered["spark"] == 12
    assert answered["duckdb"] >= 9
    assert answered["local"] >= 4


def test_an_answer_that_the_order_of_rows_decides_is_told(tmp_path: Path) -> None:
    machine.hurry()
    make_files(tmp_path)
    parity = load("parity")
    query = "SELECT id, ROW_NUMBER() OVER (PARTITION BY name ORDER BY name) AS n FROM customers;"
    other = parity.Parity()
    other._local = lambda _: [(i, 0) for i in range(7)]
    (answers,) = other.run(TABLES.format(folder=tmp_path) + query)
    assert answers.differences()
    assert sorted(answers.turned) == [(0, 2), (1, 2), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1)]
    assert sorted(answers.rows["spark"]) == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 2), (6, 2)]


def test_a_difference_is_found() -> None:
    parity = load("parity")
    assert parity.first_difference([(1, "a"), (2, None)], [(2, None), (1, "a")]) is None
    assert parity.first_difference([(1.0,)], [(1.0000001,)]) is not None
    assert parity.first_difference([(1,)], []) == "1 rows and 0 rows"
