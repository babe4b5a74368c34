"""The one writer of this process: a thread with its own connection, and group commit.

What arrives in one turn of the event loop, or while a commit is running, shares the next one;
nothing lingers to wait for more.
A thread with a plain connection, and not aiosqlite: one hop for each group instead of one for
each statement (docs/decisions.md). It also makes cancellation harmless: a handler that goes away
does not take the transaction with it.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from gateway.errors import Unavailable

T = TypeVar("T")
Item = TypeVar("Item")
Work = Callable[[sqlite3.Connection, list[Any]], list[Any]]


class _Request(NamedTuple):
    work: Work
    item: Any
    future: "asyncio.Future[Any]"


class _Outcome(NamedTuple):
    future: "asyncio.Future[Any]"
    result: Any
    error: Exception | None


class Writer:
    """Runs pieces of work inside transactions, many in one commit.

    Args:
        connect: opens the connection; called in the writer's thread, also after damage.
        on_rollback: called in the writer's thread after each rollback, to forget what is gone.
        on_error: called in the writer's thread with an error of SQLite's; it may return another
            connection to go on with, or None.
        max_waiting: how many pieces of work may wait; beyond it `submit` raises Unavailable.
        max_group: how many share one commit at most.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        on_rollback: Callable[[], None],
        on_error: Callable[[sqlite3.Connection, sqlite3.Error], sqlite3.Connection],
        max_waiting: int = 2048,
        max_group: int = 256,
    ) -> None:
        self._connection = connection
        self._on_rollback = on_rollback
        self._on_error = on_error
        self._max_waiting = max_waiting
        self._max_group = max_group
        self._waiting = 0  # touched on the loop only
        self._arrived: list[_Request] = []  # in this turn of the loop
        self._queue: queue.SimpleQueue[list[_Request] | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._closed = False
        self._thread.start()

    async def submit(
        self, work: Callable[[sqlite3.Connection, list[Item]], list[T]], item: Item
    ) -> T:
        """Run `work` on `item` in the next transaction; return its result after the commit.

        Items of the same work that share a transaction are given to it together.
        """
        if self._closed or self._waiting >= self._max_waiting:
            raise Unavailable("the gateway is writing as fast as it can", retry_after_s=1)
        request = _Request(work, item, self._loop.create_future())
        self._waiting += 1
        if not self._arrived:
            self._loop.call_soon(self._hand_over)
        self._arrived.append(request)
        result: T = await request.future
        return result

    async def close(self) -> None:
        """Finish what is waiting, then close the connection."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _hand_over(self) -> None:
        if self._arrived:
            self._queue.put(self._arrived)
            self._arrived = []

    def _run(self) -> None:
        while (group := self._queue.get()) is not None:
            while len(group) < self._max_group and not self._queue.empty():
                more = self._queue.get()
                if more is None:
                    self._queue.put(None)
                    break
                group += more
            self._loop.call_soon_threadsafe(self._answer, self._store(group))
        self._connection.close()

    def _store(self, group: list[_Request]) -> list[_Outcome]:
        """Store a group in one transaction; if that fails, each alone: one never costs another."""
        try:
            outcomes = self._transaction(group)
        except Exception as error:
            if len(group) == 1:
                return [_Outcome(group[0].future, None, self._cause(error))]
            return [outcome for request in group for outcome in self._store([request])]
        return outcomes

    def _transaction(self, group: list[_Request]) -> list[_Outcome]:
        by_work: dict[Work, list[_Request]] = {}
        for request in group:
            by_work.setdefault(request.work, []).append(request)
        connection = self._connection
        outcomes = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            for work, requests in by_work.items():
                results = work(connection, [request.item for request in requests])
                for request, result in zip(requests, results, strict=True):
                    outcomes.append(_Outcome(request.future, result, None))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._on_rollback()
            raise
        return outcomes

    def _cause(self, error: Exception) -> Exception:
        if not isinstance(error, sqlite3.Error):
            return error
        try:
            self._connection = self._on_error(self._connection, error)
        except Exception as worse:
            return worse
        return Unavailable(f"the database can not be written: {error}")

    def _answer(self, outcomes: list[_Outcome]) -> None:
        self._waiting -= len(outcomes)
        for future, result, error in outcomes:
            if future.cancelled():
                continue
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)
