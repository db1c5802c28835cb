"""Programs of the Table API, each beside the SQL that means the same. ``{...}`` are the tables of ``TABLES``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from flowsql.common import Row, RowKind
from flowsql.table import DataTypes, Table, TableEnvironment
from flowsql.table.changelog_mode import ChangelogMode
from flowsql.table.expression import TimeIntervalUnit, TimePointUnit
from flowsql.table.expressions import (
    CURRENT_RANGE,
    CURRENT_ROW,
    UNBOUNDED_RANGE,
    UNBOUNDED_ROW,
    and_,
    array,
    call,
    call_sql,
    coalesce,
    col,
    concat,
    descriptor,
    if_then_else,
    json_array,
    json_object,
    lit,
    map_,
    not_,
    null_of,
    or_,
    range_,
    row,
    row_interval,
    timestamp_diff,
    with_all_columns,
    with_columns,
    without_columns,
)
from flowsql.table.process_function import ArgumentHint, ArgumentTrait, process_table_function
from flowsql.table.udf import udtf
from flowsql.table.window import Over, Session, Slide, Tumble

TABLES = (
    """CREATE TABLE orders (id BIGINT, customer STRING, amount DECIMAL(10, 2), n INT, note STRING, tags ARRAY<STRING>,
        attributes MAP<STRING, INT>, place ROW<city STRING, zip INT>, ts TIMESTAMP(3),
        WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'datagen', 'number-of-rows' = '10')""",
    """CREATE TABLE customers (name STRING, city STRING, since DATE, proctime AS PROCTIME())
        WITH ('connector' = 'datagen', 'number-of-rows' = '10')""",
    "CREATE TABLE archive (id BIGINT, amount DECIMAL(10, 2)) WITH ('connector' = 'datagen', 'number-of-rows' = '10')",
    "CREATE TABLE sink (id BIGINT, amount DECIMAL(10, 2)) WITH ('connector' = 'blackhole')",
)

Program = Callable[[Table, Table, Table], Table]

#: Methods of Table: name, program over (orders, customers, archive), SQL.
METHODS: dict[str, tuple[Program, str]] = {
    "select": (lambda o, c, a: o.select(col("id"), col("n") + 1), "SELECT id, n + 1 AS _c1 FROM orders"),
    "select_star": (lambda o, c, a: a.select(col("*"), lit(1).alias("x1")), "SELECT *, 1 AS x1 FROM archive"),
    "select_attribute": (lambda o, c, a: o.select(o.id, o.note), "SELECT id, note FROM orders"),
    "select_with_columns": (
        lambda o, c, a: o.select(with_columns(range_("id", "amount"), 5)),
        "SELECT id, customer, amount, note FROM orders",
    ),
    "select_without_columns": (
        lambda o, c, a: o.select(without_columns(range_(4, 9))),
        "SELECT id, customer, amount FROM orders",
    ),
    "select_all_columns": (lambda o, c, a: a.select(with_all_columns()), "SELECT * FROM archive"),
    "select_flattened": (
        lambda o, c, a: o.select(col("id"), col("place").flatten),
        "SELECT id, o.place.city AS place$city, o.place.zip AS place$zip FROM orders o",
    ),
    "select_aggregates": (
        lambda o, c, a: o.select(col("n").sum, col("n").max + 1, lit(1).count),
        "SELECT SUM(n) AS EXPR$0, MAX(n) + 1 AS _c1, COUNT(1) AS EXPR$2 FROM orders",
    ),
    "where": (lambda o, c, a: a.where(col("id") > 5), "SELECT * FROM archive WHERE id > 5"),
    "filter": (
        lambda o, c, a: a.filter((col("id") > 5) & (col("amount") < 3)).filter(col("id").is_not_null),
        "SELECT * FROM archive WHERE id > 5 AND amount < 3 AND id IS NOT NULL",
    ),
    "where_select": (
        lambda o, c, a: o.select(col("id"), (col("n") * 2).alias("twice")).where(col("twice") > 4),
        "SELECT * FROM (SELECT id, n * 2 AS twice FROM orders) WHERE twice > 4",
    ),
    "alias": (lambda o, c, a: a.alias("x"), "SELECT id AS x, amount FROM archive"),
    "add_columns": (
        lambda o, c, a: a.add_columns(concat(col("id").cast(DataTypes.STRING()), "x").alias("s")),
        "SELECT *, CONCAT(CAST(id AS STRING), 'x') AS s FROM archive",
    ),
    "add_or_replace_columns": (
        lambda o, c, a: a.add_or_replace_columns((col("id") + 1).alias("id"), lit(2).alias("two")),
        "SELECT id + 1 AS id, amount, 2 AS two FROM archive",
    ),
    "rename_columns": (
        lambda o, c, a: a.rename_columns(col("amount").alias("price")),
        "SELECT id, amount AS price FROM archive",
    ),
    "drop_columns": (lambda o, c, a: a.drop_columns(col("id")), "SELECT amount FROM archive"),
    "distinct": (lambda o, c, a: o.select(col("customer")).distinct(), "SELECT DISTINCT customer FROM orders"),
    "group_by": (
        lambda o, c, a: o.group_by(col("customer")).select(
            col("customer"), col("amount").sum.alias("total"), col("id").count.distinct
        ),
        "SELECT customer, SUM(amount) AS total, COUNT(DISTINCT id) AS EXPR$1 FROM orders GROUP BY customer",
    ),
    "group_by_expression": (
        lambda o, c, a: o.group_by((col("n") % 3).alias("k"), col("customer")).select(col("k"), col("n").avg),
        "SELECT n % 3 AS k, AVG(n) AS EXPR$0 FROM orders GROUP BY n % 3, customer",
    ),
    "group_by_filter": (
        lambda o, c, a: (
            o.group_by(col("customer")).select(col("customer"), col("n").sum.alias("s")).where(col("s") > 10)
        ),
        "SELECT customer, SUM(n) AS s FROM orders GROUP BY customer HAVING SUM(n) > 10",
    ),
    "join": (
        lambda o, c, a: o.select(col("id"), col("customer")).join(c, col("customer") == col("name")),
        "SELECT * FROM (SELECT id, customer FROM orders) JOIN customers ON customer = name",
    ),
    "join_where": (
        lambda o, c, a: o.join(c).where(col("customer") == col("name")).select(col("id"), col("city")),
        "SELECT id, city FROM orders, customers WHERE customer = name",
    ),
    "left_outer_join": (
        lambda o, c, a: o.left_outer_join(c, col("customer") == col("name")).select(col("id"), col("city")),
        "SELECT id, city FROM orders LEFT JOIN customers ON customer = name",
    ),
    "right_outer_join": (
        lambda o, c, a: o.right_outer_join(c, col("customer") == col("name")).select(col("id"), col("city")),
        "SELECT id, city FROM orders RIGHT JOIN customers ON customer = name",
    ),
    "full_outer_join": (
        lambda o, c, a: o.full_outer_join(c, col("customer") == col("name")).select(col("id"), col("city")),
        "SELECT id, city FROM orders FULL JOIN customers ON customer = name",
    ),
    "interval_join": (
        lambda o, c, a: o.left_outer_join(
            o.select(col("customer").alias("who"), col("ts").alias("later")),
            (col("customer") == col("who"))
            & (col("later") >= col("ts"))
            & (col("later") <= col("ts") + lit(10).minutes),
        ).select(col("id"), col("later")),
        """SELECT id, later FROM orders LEFT JOIN (SELECT customer AS who, ts AS later FROM orders)
           ON customer = who AND later >= ts AND later <= ts + INTERVAL '10' MINUTE""",
    ),
    "self_join": (
        lambda o, c, a: a.join(a.alias("id2", "amount2"), col("id") == col("id2")),
        "SELECT * FROM archive JOIN (SELECT id AS id2, amount AS amount2 FROM archive) ON id = id2",
    ),
    "union_all": (
        lambda o, c, a: o.select(col("id"), col("amount")).union_all(a).union_all(a),
        "SELECT id, amount FROM orders UNION ALL SELECT * FROM archive UNION ALL SELECT * FROM archive",
    ),
    "union": (
        lambda o, c, a: o.select(col("id"), col("amount")).union(a),
        "SELECT id, amount FROM orders UNION SELECT * FROM archive",
    ),
    "order_by_fetch": (
        lambda o, c, a: a.order_by(col("amount").desc, col("id")).fetch(3),
        "SELECT * FROM archive ORDER BY amount DESC, id LIMIT 3",
    ),
    "order_by_offset_fetch": (
        lambda o, c, a: a.order_by(col("amount").asc).offset(2).fetch(3),
        "SELECT * FROM archive ORDER BY amount OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY",
    ),
    "order_by_select_limit": (
        lambda o, c, a: a.order_by(col("amount")).select((col("id") + 1).alias("amount")).limit(3),
        "SELECT id + 1 AS amount FROM archive AS t ORDER BY t.amount LIMIT 3",
    ),
    "order_by_where_limit": (
        lambda o, c, a: (
            a.order_by(col("amount"))
            .select((col("id") + 1).alias("x"))
            .where(col("x") > 2)
            .select(col("x") * 2)
            .limit(3)
        ),
        "SELECT (id + 1) * 2 AS _c0 FROM archive WHERE id + 1 > 2 ORDER BY amount LIMIT 3",
    ),
    "limit": (lambda o, c, a: a.limit(3, 1), "SELECT * FROM archive LIMIT 3 OFFSET 1"),
    "tumbling_window": (
        lambda o, c, a: (
            o.window(Tumble.over(lit(10).minutes).on(col("ts")).alias("w"))
            .group_by(col("w"), col("customer"))
            .select(col("customer"), col("w").start.alias("s"), col("w").end.alias("e"), col("n").sum.alias("total"))
        ),
        """SELECT customer, TUMBLE_START(ts, INTERVAL '10' MINUTE) AS s, TUMBLE_END(ts, INTERVAL '10' MINUTE) AS e,
           SUM(n) AS total FROM orders GROUP BY TUMBLE(ts, INTERVAL '10' MINUTE), customer""",
    ),
    "tumbling_window_rowtime": (
        lambda o, c, a: (
            o.where(col("n") > 1)
            .window(Tumble.over(lit(1).hours).on(col("ts")).alias("w"))
            .group_by(col("w"))
            .select(col("w").rowtime.alias("t"), col("n").sum.alias("total"))
        ),
        """SELECT TUMBLE_ROWTIME(ts, INTERVAL '1' HOUR) AS t, SUM(n) AS total FROM orders WHERE n > 1
           GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)""",
    ),
    "sliding_window": (
        lambda o, c, a: (
            o.window(Slide.over(lit(10).minutes).every(lit(3).minutes).on(col("ts")).alias("w"))
            .group_by(col("w"))
            .select(col("w").end.alias("e"), col("n").max.alias("m"))
        ),
        """SELECT HOP_END(ts, INTERVAL '3' MINUTE, INTERVAL '10' MINUTE) AS e, MAX(n) AS m FROM orders
           GROUP BY HOP(ts, INTERVAL '3' MINUTE, INTERVAL '10' MINUTE)""",
    ),
    "session_window": (
        lambda o, c, a: (
            o.window(Session.with_gap(lit(5).minutes).on(col("ts")).alias("w"))
            .group_by(col("customer"), col("w"))
            .select(col("customer"), col("w").start.alias("s"), lit(1).count.alias("c"))
        ),
        """SELECT customer, SESSION_START(ts, INTERVAL '5' MINUTE) AS s, COUNT(1) AS c FROM orders
           GROUP BY SESSION(ts, INTERVAL '5' MINUTE), customer""",
    ),
    "over_window_rows": (
        lambda o, c, a: o.over_window(
            Over.partition_by(col("customer"))
            .order_by(col("ts"))
            .preceding(row_interval(2))
            .following(CURRENT_ROW)
            .alias("w")
        ).select(col("id"), col("n").sum.over(col("w")).alias("s")),
        """SELECT id, SUM(n) OVER (PARTITION BY customer ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s
           FROM orders""",
    ),
    "over_window_range": (
        lambda o, c, a: o.over_window(
            Over.partition_by(col("customer")).order_by(col("ts")).preceding(lit(1).hours).alias("w")
        ).select(col("id"), col("n").sum.over(col("w")).alias("s")),
        """SELECT id,
             SUM(n) OVER (PARTITION BY customer ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)
             AS s FROM orders""",
    ),
    "over_window_unbounded": (
        lambda o, c, a: o.over_window(
            Over.order_by(col("ts")).preceding(UNBOUNDED_RANGE).following(CURRENT_RANGE).alias("w"),
            Over.order_by(col("ts")).preceding(UNBOUNDED_ROW).alias("v"),
        ).select(col("n").max.over(col("w")).alias("m")),
        """SELECT MAX(n) OVER (ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS m FROM orders""",
    ),
    "join_lateral": (
        lambda o, c, a: o.join_lateral(call("split_up", col("note")).alias("word", "length")),
        "SELECT * FROM orders, LATERAL TABLE(split_up(note)) AS t(word, length)",
    ),
    "left_outer_join_lateral": (
        lambda o, c, a: o.left_outer_join_lateral(call("spell", col("note")).alias("word")),
        "SELECT * FROM orders LEFT JOIN LATERAL TABLE(spell(note)) AS t(word) ON TRUE",
    ),
    "to_changelog": (
        lambda o, c, a: (
            o.group_by(col("customer"))
            .select(col("customer"), col("n").sum.alias("s"))
            .to_changelog(
                descriptor("kind").as_argument("op"), map_("INSERT, UPDATE_AFTER", "u").as_argument("op_mapping")
            )
        ),
        "SELECT * FROM TO_CHANGELOG(input => (SELECT customer, SUM(n) AS s FROM orders GROUP BY customer), "
        "op => DESCRIPTOR(kind), op_mapping => MAP['INSERT, UPDATE_AFTER', 'u'])",
    ),
    "to_changelog on_time": (
        lambda o, c, a: o.to_changelog(descriptor("ts").as_argument("on_time"), lit("told").as_argument("uid")).where(
            col("n") > 1
        ),
        "SELECT * FROM TO_CHANGELOG(input => TABLE orders, on_time => DESCRIPTOR(ts), uid => 'told') WHERE n > 1",
    ),
    "from_changelog": (
        lambda o, c, a: o.to_changelog().from_changelog().where(col("n") > 1),
        "SELECT * FROM FROM_CHANGELOG(input => (SELECT * FROM TO_CHANGELOG(input => TABLE orders))) WHERE n > 1",
    ),
    "process": (
        lambda o, c, a: (
            o.where(col("n") > 1).partition_by(col("customer")).process("beside", c.partition_by(col("name")), 2)
        ),
        "SELECT * FROM beside((SELECT * FROM orders WHERE n > 1) PARTITION BY customer, "
        "TABLE customers PARTITION BY name, 2)",
    ),
    "process_upserts": (
        lambda o, c, a: o.partition_by(col("customer")).process("newest").select(col("customer"), col("n")),
        "SELECT customer, n FROM newest(TABLE orders PARTITION BY customer)",
    ),
    "flat_map": (
        lambda o, c, a: a.flat_map(call("spell", col("id")).alias("word")),
        "SELECT t.word FROM archive, LATERAL TABLE(spell(id)) AS t(word)",
    ),
    "map": (
        lambda o, c, a: a.map(row(col("id"), col("amount") + 1)),
        "SELECT id AS f0, amount + 1 AS f1 FROM archive",
    ),
    "minus": (
        lambda o, c, a: a.minus(o.select(col("id"), col("amount"))),
        "SELECT * FROM archive EXCEPT SELECT id, amount FROM orders",
    ),
    "minus_all": (
        lambda o, c, a: a.minus_all(o.select(col("id"), col("amount"))),
        "SELECT * FROM archive EXCEPT ALL SELECT id, amount FROM orders",
    ),
    "intersect": (
        lambda o, c, a: a.intersect(o.select(col("id"), col("amount"))),
        "SELECT * FROM archive INTERSECT SELECT id, amount FROM orders",
    ),
    "intersect_all": (
        lambda o, c, a: a.intersect_all(o.select(col("id"), col("amount"))),
        "SELECT * FROM archive INTERSECT ALL SELECT id, amount FROM orders",
    ),
    "in_table": (
        lambda o, c, a: a.where(col("id").in_(o.select(col("id")))),
        "SELECT * FROM archive WHERE id IN (SELECT id FROM orders)",
    ),
}

#: Expressions with clauses or operators of their own: program, SQL of the one column.
EXPRESSIONS: dict[str, tuple[Callable[[], object], str]] = {
    "arithmetic": (lambda: (col("n") + 1) * 2 - col("n") / 3 % 4, "(n + 1) * 2 - n / 3 % 4"),
    "reflected": (lambda: 1 + col("n") - (10 - col("n")) / (7 % col("n")), "1 + n - (10 - n) / (7 % n)"),
    "unary": (lambda: -col("n"), "-n"),
    "power": (lambda: col("n") ** 2, "POWER(n, 2)"),
    "text_plus": (lambda: col("note") + "x" + col("n"), "note || 'x' || CAST(n AS STRING)"),
    "logic": (
        lambda: ((col("n") > 1) | (col("n") <= -1)) & ~(col("note") == "a"),
        "(n > 1 OR n <= -1) AND (note = 'a') IS NOT TRUE",
    ),
    "and_or_not": (
        lambda: or_(and_(col("n") != 1, col("n") < 5, col("n") >= 0), not_(col("note") == "b"), col("n") == 9),
        "n <> 1 AND n < 5 AND n >= 0 OR NOT note = 'b' OR n = 9",
    ),
    "between": (lambda: col("n").between(1, 5), "n BETWEEN 1 AND 5"),
    "not_between": (lambda: col("n").not_between(1, 5), "n NOT BETWEEN 1 AND 5"),
    "in": (lambda: col("n").in_(1, 2, 3), "n IN (1, 2, 3)"),
    "like": (lambda: col("note").like("a%"), "note LIKE 'a%'"),
    "similar": (lambda: col("note").similar("a%"), "note SIMILAR TO 'a%'"),
    "then": (lambda: (col("n") > 1).then("a", "b"), "CASE WHEN n > 1 THEN 'a' ELSE 'b' END"),
    "if_then_else": (lambda: if_then_else(col("n") > 1, col("n"), 0), "CASE WHEN n > 1 THEN n ELSE 0 END"),
    "coalesce": (lambda: coalesce(col("n"), 0), "COALESCE(n, 0)"),
    "cast": (lambda: col("n").cast(DataTypes.DECIMAL(10, 2)), "CAST(n AS DECIMAL(10, 2))"),
    "try_cast": (lambda: col("note").try_cast(DataTypes.INT()), "TRY_CAST(note AS INT)"),
    "null_of": (lambda: null_of(DataTypes.INT()), "CAST(NULL AS INT)"),
    "substring": (lambda: col("note").substring(2, 3), "SUBSTRING(note, 2, 3)"),
    "trim": (
        lambda: col("note").trim("x").trim_leading().trim_trailing("y"),
        "TRIM(TRAILING 'y' FROM TRIM(LEADING ' ' FROM TRIM(BOTH 'x' FROM note)))",
    ),
    "overlay": (lambda: col("note").overlay("x", 2, 1), "OVERLAY(note PLACING 'x' FROM 2 FOR 1)"),
    "position": (lambda: lit("a").position(col("note")), "POSITION('a' IN note)"),
    "log": (lambda: col("n").log(2), "LOG(2, n)"),
    "floor": (lambda: col("ts").floor(TimeIntervalUnit.HOUR), "FLOOR(ts TO HOUR)"),
    "ceil": (lambda: col("amount").ceil(), "CEIL(amount)"),
    "extract": (lambda: col("ts").extract(TimeIntervalUnit.DAY), "EXTRACT(DAY FROM ts)"),
    "timestamp_diff": (
        lambda: timestamp_diff(TimePointUnit.HOUR, col("ts"), lit("2020-01-01").to_timestamp),
        "TIMESTAMPDIFF(HOUR, ts, CAST('2020-01-01' AS TIMESTAMP(3)))",
    ),
    "interval": (lambda: col("ts") + lit(90).seconds - lit(2).days, "ts + INTERVAL '90' SECOND - INTERVAL '2' DAY"),
    "interval_of_column": (lambda: col("ts") + col("n").minutes, "ts + INTERVAL (n) MINUTE"),
    "item": (lambda: col("tags").at(1), "tags[1]"),
    "item_of_map": (lambda: col("attributes").at("k"), "attributes['k']"),
    "field": (lambda: col("place").get("city"), "orders.place.city"),
    "field_by_attribute": (lambda: col("place").city, "orders.place.city"),
    "array": (lambda: array(col("n"), 1).cardinality, "CARDINALITY(ARRAY[n, 1])"),
    "map": (lambda: map_("k", col("n")).at("k"), "MAP['k', n]['k']"),
    "json_value": (
        lambda: col("note").json_value("$.a", DataTypes.INT()),
        "JSON_VALUE(note, '$.a' RETURNING INT NULL ON EMPTY NULL ON ERROR)",
    ),
    "json_query": (
        lambda: col("note").json_query("$.a"),
        "JSON_QUERY(note, '$.a' WITHOUT ARRAY WRAPPER NULL ON EMPTY NULL ON ERROR)",
    ),
    "json_exists": (lambda: col("note").json_exists("$.a"), "JSON_EXISTS(note, '$.a')"),
    "is_json": (lambda: col("note").is_json(), "note IS JSON"),
    "json_object": (
        lambda: json_object(args_null(), "k", col("n")),
        "JSON_OBJECT(KEY 'k' VALUE n NULL ON NULL)",
    ),
    "json_array": (lambda: json_array(args_absent(), col("n"), 1), "JSON_ARRAY(n, 1 ABSENT ON NULL)"),
    "call": (lambda: call("UPPER", col("note")), "UPPER(note)"),
    "call_sql": (lambda: call_sql("n * 2 + CHAR_LENGTH(note)"), "n * 2 + CHAR_LENGTH(note)"),
}


def args_null() -> object:
    from flowsql.table.expression import JsonOnNull

    return JsonOnNull.NULL


def args_absent() -> object:
    from flowsql.table.expression import JsonOnNull

    return JsonOnNull.ABSENT


@process_table_function(result_type="BIGINT")
def beside(
    left: Annotated[Row, ArgumentHint(ArgumentTrait.SET_SEMANTIC_TABLE)],
    right: Annotated[Row, ArgumentHint(ArgumentTrait.SET_SEMANTIC_TABLE)],
    n: int = 1,
) -> int:
    return n


@process_table_function(result_type="ROW<n BIGINT>", changelog_mode=ChangelogMode.upsert(False))
def newest(order: Annotated[Row, ArgumentHint(ArgumentTrait.SET_SEMANTIC_TABLE)]) -> Row:
    return Row.of_kind(RowKind.UPDATE_AFTER, order.n)


def environment_with_tables() -> TableEnvironment:
    environment = TableEnvironment.create()
    environment.get_config().set_local_timezone("UTC")
    for statement in TABLES:
        environment.execute_sql(statement)
    split_up = udtf(lambda text: [(word, len(word)) for word in text.split()], result_types=["STRING", "INT"])
    environment.create_temporary_function("split_up", split_up)
    environment.create_temporary_function("spell", udtf(lambda value: list(str(value)), result_types=["STRING"]))
    environment.create_temporary_function("beside", beside)
    environment.create_temporary_function("newest", newest)
    return environment
