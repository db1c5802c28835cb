"""Somebody who writes to tables while others read them."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pymysql

from .place import Place


class Writer:
    """Writes until it is left: single rows and many, keys that change, transactions that are taken back.

    Args:
        make_key: keys of numbers.
        pause_s: between transactions.
        survives: goes on when the server goes away and returns.
    """

    def __init__(
        self,
        place: Place,
        tables: list[str],
        make_key: Callable[[int], Any],
        seed: int,
        *,
        pause_s: float = 0.0,
        survives: bool = False,
    ) -> None:
        self._place = place
        self._tables = tables
        self._key = make_key
        self._draw = random.Random(seed)
        self._pause_s = pause_s
        self._survives = survives
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failure: BaseException | None = None

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        assert self._failure is None, self._failure

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._write()
            except pymysql.MySQLError as error:
                if not self._survives:
                    self._failure = error
                    return
                time.sleep(0.05)

    def _write(self) -> None:
        with closing(self._place.connect(connect_timeout=5)) as connection, connection.cursor() as cursor:
            while not self._stopped.is_set():
                cursor.execute("BEGIN")
                for _ in range(self._draw.choice([1, 1, 1, 2, 5, 30])):
                    self._change(cursor)
                cursor.execute(self._draw.choice(["COMMIT"] * 9 + ["ROLLBACK"]))
                self._stopped.wait(self._pause_s)

    def _change(self, cursor: Any) -> None:
        draw, table = self._draw, self._draw.choice(self._tables)
        key, other = self._key(draw.randrange(400)), self._key(draw.randrange(400))
        match draw.randrange(6):
            case 0 | 1:
                cursor.execute(
                    f"REPLACE INTO {table} VALUES (%s, %s, %s)", (key, draw.randrange(9), f"v{draw.random()}")
                )
            case 2 | 3:
                cursor.execute(f"UPDATE {table} SET k = k + 1 WHERE id >= %s LIMIT 3", (key,))
            case 4:
                cursor.execute(f"UPDATE IGNORE {table} SET id = %s WHERE id = %s", (other, key))
            case 5:
                cursor.execute(f"DELETE FROM {table} WHERE id = %s", (key,))
