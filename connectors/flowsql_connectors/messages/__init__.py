"""Tables of messages: what a connector of one file is written upon, where the other side sends messages or takes them.

A connector is a module with a factory or two, and a line in ``registry._BUILT_IN``; its client library is imported by
:func:`~flowsql_connectors.messages.client.imported`, on use, which names the extra where it is not installed.

**A source**: a ``MessageSourceFactory`` (``source``) says the options, the metadata keys with their types, and makes a
``MessageFeed`` (``feed``) for each split. A feed gives bytes; formats, columns, metadata columns, bad records,
watermark options, batches, the bounded queue, back-pressure, checkpoints and reconnecting are here (``reader``):

- ``open(position)`` connects. What fails there or in ``receive`` is a ``ConnectorError``; if it is ``retryable`` the
  feed is closed and opened again after a pause that grows (``reconnect.*`` options, ``backoff``), else the job fails.
- ``receive(wait_s)`` waits no longer than that and gives an ``Arrived`` or None. It is called until a batch is full or
  nothing comes; then all messages are decoded together. One message a call is fine.
- Replay: a feed that can go on behind a message sets ``replays`` and gives ``positions`` (numbers, texts, lists or
  dicts of them); checkpoints keep them, ``open`` gets the last one: exactly once.
- Acknowledgement: a feed whose other side delivers again what nobody confirmed takes ``kept(count)``: of the messages
  that it gave since it was made, the first ``count`` are in a complete checkpoint: at least once. Without checkpoints
  (``FeedContext.checkpointed``) a feed confirms what it gives: at most once.
- ``caught_up`` tells when all was received that was there, for ``flowsql.trigger`` = ``available-now``.
- Neither: at most once. ``guarantee`` says in a few words which it is; EXPLAIN shows it.
- A message without a value is None: no row, or what the format makes of NULL.
- ``on-error`` = skip or dead-letter leaves messages out that cannot be read (``bad_messages``); ``origin`` is what
  letters say of the other side. A ``Connector`` whose ``table_reference`` is ``on-error.dead-letter.table`` lets tables
  name another one for them.

**A sink**: a ``MessageSinkFactory`` (``sink``) makes a ``MessageOutlet`` (``outlet``) for each subtask. ``send`` gets
rows as messages, as columns, with their kinds and metadata, and returns once they have arrived; rows wait by
``sink.buffer-flush.*``, and go at each checkpoint; what is ``retryable`` is sent again whole (``sink.max-retries``): at
least once, and exactly once in effect where the other side takes the same again by key. ``upserts``: with a primary
key, changes are written by it.

**A lookup**: a ``LookupMessageFactory`` (``lookup``) is a source that also makes a ``MessageLookup``, which is given
keys and fetches the messages of each. A connector that only looks up raises in ``feed``.

All errors are one sentence that names the other side and what it said; a bad record names its place
(``MessageFeed.place``).
"""
