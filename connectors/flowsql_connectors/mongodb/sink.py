"""INSERT INTO collections: rows wait a little, and go in bulk writes."""

from __future__ import annotations

from typing import Any

import pymongo
from bson import ObjectId

from flowsql_connectors.messages.outlet import MessageOutlet, Outgoing
from flowsql_connectors.mongodb.client import collection_of, connect, told
from flowsql_connectors.mongodb.conditions import ID
from flowsql_connectors.mongodb.options import BYPASS, ORDERED, ORDERED_SHORT
from flowsql_connectors.mongodb.to_bson import bson_values, documents, ids_of
from flowsql_connectors.options import OptionValues
from flowsql_connectors.services.changes import last_of_rows
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.specs import TableSpec


class MongoOutlet(MessageOutlet):
    """Writes the rows of one subtask."""

    def __init__(self, table: TableSpec, values: OptionValues) -> None:
        names = [column.name for column in table.columns]
        self._schema = table.columns
        self._keys = tuple(names.index(name) for name in table.primary_key)
        #: Keys of a sharded collection, which stand in the filter of each update.
        self._shard_keys = tuple(names.index(name) for name in table.partition_keys if name != ID)
        self._values = values
        self._ordered = values.get(ORDERED) and values.get(ORDERED_SHORT)
        self._client: Any = None
        self._collection: Any = None
        #: The rows that are being sent, and what is done with them: sent again they are the same documents.
        self._sending: Outgoing | None = None
        self._writes: list[Any] = []
        #: Documents without a primary key that are being sent, with the ids that they got here.
        self._rows: list[dict[str, Any]] = []

    def open(self) -> None:
        """A client, which connects when it is first asked."""
        self._client = connect(self._values)
        self._collection = collection_of(self._client, self._values)

    def send(self, rows: Outgoing) -> None:
        """One bulk write."""
        if self._sending is not rows:
            self._writes = self._updates(rows) if self._keys else self._inserts(rows)
            self._sending = rows
        elif not self._keys:
            # Some may be there already: by their ids they are written once.
            self._writes = [pymongo.ReplaceOne({ID: row[ID]}, row, upsert=True) for row in self._rows]
        with told(self._values):
            bypass = self._values.get(BYPASS) or None
            self._collection.bulk_write(self._writes, ordered=self._ordered, bypass_document_validation=bypass)
        self._sending = None

    def _inserts(self, rows: Outgoing) -> list[Any]:
        self._rows = [{ID: ObjectId(), **document} for document in documents(rows.columns, self._schema)]
        return [pymongo.InsertOne(row) for row in self._rows]

    def _updates(self, rows: Outgoing) -> list[Any]:
        last = last_of_rows(rows.columns, rows.kinds, self._keys)
        for key in self._keys:
            if last.columns[key].null_count:
                raise ExecutionError(
                    "null-key", f"Column '{self._schema[key].name}' of the primary key is NULL in a row."
                )
        ids = ids_of(last.columns, self._schema, self._keys)
        gone = [False] * last.rows if last.gone is None else last.gone.tolist()
        of_shards = [(self._schema[at], last.columns[at]) for at in self._shard_keys]
        shards = [(column.name, bson_values(array, column.type)) for column, array in of_shards]
        made: list[Any] = []
        for at, document in enumerate(documents(last.columns, self._schema)):
            if gone[at]:
                made.append(pymongo.DeleteOne({ID: ids[at]}))
                continue
            document.pop(ID, None)
            where = {ID: ids[at], **{name: values[at] for name, values in shards}}
            # A document of nothing but its id: there is nothing to set.
            update = {"$set": document} if document else {"$setOnInsert": {ID: ids[at]}}
            made.append(pymongo.UpdateOne(where, update, upsert=True))
        return made

    def close(self) -> None:
        """End the connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()
