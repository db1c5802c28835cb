"""A process table function: shopping carts with state and timers, called from SQL and by a method.

python examples/process_functions.py
"""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from flowsql.common import Row
from flowsql.table import TableEnvironment
from flowsql.table.expressions import col, descriptor, lit
from flowsql.table.process_function import (
    ArgumentHint,
    ArgumentTrait,
    Context,
    OnTimerContext,
    ProcessTableFunction,
    StateHint,
    process_table_function,
)

Events = Annotated[Row, ArgumentHint(ArgumentTrait.SET_SEMANTIC_TABLE, ArgumentTrait.REQUIRE_ON_TIME)]


@dataclass
class Cart:
    """How many of each product lie in a user's cart."""

    products: dict[int, int] = field(default_factory=dict)


@process_table_function(result_type="ROW<what STRING, items MAP<BIGINT, INT>>")
class Checkout(ProcessTableFunction):
    """Takes ADD, REMOVE and CHECKOUT; reminds a user who does nothing, and gives up after a while."""

    def eval(
        self,
        context: Context,
        cart: Annotated[Cart, StateHint(ttl="7 days")],
        events: Events,
        reminder: datetime.timedelta,
        timeout: datetime.timedelta,
    ) -> Iterator[tuple[str, dict[int, int]]]:
        """An event of a user."""
        match events.event:
            case "ADD":
                cart.products[events.product] = cart.products.get(events.product, 0) + 1
            case "REMOVE" if cart.products.pop(events.product, 1) > 1:
                cart.products[events.product] = 1
            case "CHECKOUT":
                yield "CHECKOUT", cart.products
                context.clear_all()
                return
        time = context.time_context()
        time.register_on_time("remind", time.time() + reminder)
        time.register_on_time("give up", time.time() + timeout)

    def on_timer(self, context: OnTimerContext, cart: Cart) -> Iterator[tuple[str, dict[int, int]]]:
        """The user does nothing."""
        if context.current_timer() == "remind":
            yield "REMINDER", cart.products
        else:
            context.clear_all()


EVENTS = """ann,ADD,1,2024-01-01 12:00:10
bob,ADD,7,2024-01-01 12:00:20
ann,ADD,2,2024-01-01 12:00:30
ann,CHECKOUT,,2024-01-01 12:00:50
cat,ADD,3,2024-01-01 12:09:00
bob,CHECKOUT,,2024-01-01 12:20:00
"""


def main() -> None:
    """Ann buys; Bob is reminded and comes back; Cat is reminded and does not."""
    environment = TableEnvironment.create()
    environment.get_config().set("parallelism.default", "1")
    environment.create_temporary_system_function("checkout", Checkout)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.csv"
        path.write_text(EVENTS, encoding="utf-8")
        environment.execute_sql(
            "CREATE TABLE events (`user` STRING, event STRING, product BIGINT, ts TIMESTAMP(3), "
            "WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'format' = 'csv', 'csv.null-literal' = '', "
            f"'path' = '{path}')"
        )
        environment.execute_sql(
            "SELECT * FROM checkout(events => TABLE events PARTITION BY `user`, on_time => DESCRIPTOR(ts), "
            "reminder => INTERVAL '1' MINUTE, timeout => INTERVAL '15' MINUTE)"
        ).print()
        events = environment.from_path("events")
        reminded = events.partition_by(col("user")).process(
            Checkout,
            lit(1).minutes.as_argument("reminder"),
            lit(15).minutes.as_argument("timeout"),
            descriptor("ts").as_argument("on_time"),
        )
        reminded.where(col("what") == "REMINDER").select(col("user"), col("rowtime")).execute().print()


if __name__ == "__main__":
    main()
