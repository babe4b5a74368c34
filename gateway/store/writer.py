"""The one writer of this process: a thread with its own connection, and group commit.

What arrives in one turn of the event loop, or while a commit is running, shares the next one;
nothing lingers to wait for more.
A thread with a plain connection, and not aiosqlite: one hop for each group instead of one for
each statement (docs/decisions.md). It also makes cancellation harmless: a handler that goes away
does not take the transaction with it.
"""

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from gateway.errors import Unavailable
from gateway.store import damage

log = logging.getLogger(__name__)

T = TypeVar("T")
Item = TypeVar("Item")
_LAST_WAIT_MS = 100
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
        connect: opens the connection, in the writer's thread; again after damage.
        require_place: raises Moved when the file is not there any more; asked on the loop before
            a group is answered.
        on_damage: called in the writer's thread when the file is damaged; afterwards the
            connection is opened anew.
        max_waiting: how many pieces of work may wait; beyond it `submit` raises Unavailable.
        max_group: no more join a commit that this many share.
    """

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        *,
        require_place: Callable[[], None],
        on_damage: Callable[[sqlite3.Connection, sqlite3.Error], None],
        max_waiting: int = 2048,
        max_group: int = 256,
    ) -> None:
        self._connect = connect
        self._require_place = require_place
        self._on_damage = on_damage
        self._max_waiting = max_waiting
        self._max_group = max_group
        self.on_commit: Callable[[float, int], None] = lambda took_s, requests: None
        self._connection: sqlite3.Connection | None = None
        self._waiting = 0  # touched on the loop only
        self._arrived: list[_Request] = []  # in this turn of the loop
        self._queue: queue.SimpleQueue[list[_Request]] = queue.SimpleQueue()  # []: the end
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
        if len(self._arrived) >= self._max_group:
            self._hand_over()
        result: T = await request.future
        return result

    async def close(self) -> None:
        """Finish what is waiting, then close the connection."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._queue.put([])
        await asyncio.to_thread(self._thread.join)

    def _hand_over(self) -> None:
        if self._arrived:
            self._queue.put(self._arrived)
            self._arrived = []

    def _run(self) -> None:
        while group := self._next_group():
            self._loop.call_soon_threadsafe(self._answer, self._store(group))
        if self._connection is not None:
            self._connection.close()

    def _next_group(self) -> list[_Request]:
        """Wait for work and return what there is, up to a full group; an empty list is the end."""
        group = self._queue.get()
        while group and len(group) < self._max_group and not self._queue.empty():
            more = self._queue.get()
            if not more:
                self._queue.put(more)  # the end, for the next time
                break
            group = group + more
        return group

    def _store(self, group: list[_Request]) -> list[_Outcome]:
        """Store a group in one transaction. Where a piece of work fails, each is tried alone."""
        try:
            return self._transaction(group)
        except _Refused as refused:  # nobody's own fault, and the next one would wait as long
            cause = self._later(refused.error)
            return [_Outcome(request.future, None, cause) for request in group]
        except Exception as error:
            if len(group) == 1:
                return [_Outcome(group[0].future, None, self._cause(error))]
            return [outcome for request in group for outcome in self._store([request])]

    def _transaction(self, group: list[_Request]) -> list[_Outcome]:
        by_work: dict[Work, list[_Request]] = {}
        for request in group:
            by_work.setdefault(request.work, []).append(request)
        connection = self._begin()
        outcomes = []
        try:
            for work, requests in by_work.items():
                results = work(connection, [request.item for request in requests])
                for request, result in zip(requests, results, strict=True):
                    outcomes.append(_Outcome(request.future, result, None))
            began = time.perf_counter()
            self._commit(connection)
            self.on_commit(time.perf_counter() - began, len(group))
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        return outcomes

    def _begin(self) -> sqlite3.Connection:
        try:
            if self._connection is None:
                self._connection = self._connect()
            if self._closed:  # a lock that another process holds must not hold up our end
                self._connection.execute(f"PRAGMA busy_timeout = {_LAST_WAIT_MS:d}")
            self._connection.execute("BEGIN IMMEDIATE")
        except Exception as error:
            raise _Refused(error) from error
        return self._connection

    def _commit(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise _Refused(error) from error

    def _cause(self, error: Exception) -> Exception:
        """Return what the caller gets: SQLite's trouble with the file is ours, the rest its own."""
        if isinstance(error, sqlite3.Error) and damage.is_trouble(error):
            return self._later(error)
        return error

    def _later(self, error: Exception) -> Unavailable:
        log.warning("the database can not be written: %s", error)
        if damage.is_damage(error) and self._connection is not None:
            connection, self._connection = self._connection, None
            self._on_damage(connection, error)
        return Unavailable(f"the database can not be written: {error}")

    def _moved(self) -> Unavailable | None:
        """Return what to tell everybody if the file that was written is not the database now."""
        try:
            self._require_place()
        except damage.Moved as error:
            log.warning("the database can not be written: %s", error)
            return Unavailable(f"the database can not be written: {error}")
        return None

    def _answer(self, outcomes: list[_Outcome]) -> None:
        self._waiting -= len(outcomes)
        moved = self._moved()
        for future, result, error in outcomes:
            if future.cancelled():
                continue
            if moved is not None:
                future.set_exception(moved)
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)


class _Refused(Exception):
    """The transaction could not be begun or committed."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error
