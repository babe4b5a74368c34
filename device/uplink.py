# The loop that takes a batch from the outbox, delivers it, and removes what was
# acknowledged. Nothing is removed before an answer that counts.

import asyncio
import gc

import backoff
import seal
import wire

_EXCHANGE_MS = 10_000
_LOOK_MS = 500
_MORE = 4  # readings in the next batch, after one that was too large for the heap


class Uplink:
    max_count = 64
    max_batch_bytes = 8192  # of records, which are shorter than what is sent
    heartbeat_ms = 300_000

    # line: .up() and `async exchange(body)` -> post.Answer, or OSError. news: an
    # asyncio.Event, set by the sampler. random() is in [0, 1).
    def __init__(self, outbox, line, envelope, clock, random, watch, led, news, tell):
        self._outbox = outbox
        self._line = line
        self._envelope = envelope
        self._clock = clock
        self._random = random
        self._watch = watch
        self._led = led
        self._news = news
        self._tell = tell
        self.failures = 0
        self._count = self.max_count
        self._halves = []  # sizes still to be tried of a batch that was refused, next one last
        self._suspect = None  # key of a single record that was refused
        self._beat_due_ms = 0  # the first attempt of a boot says hello

    async def run(self):
        while True:
            await self._line_up()
            wait_ms = await self.run_once()
            if wait_ms:
                await self._led.again()
                await self._wait(wait_ms)
            elif not self._has_work():
                await self._idle()

    async def _line_up(self):
        if self._line.up():
            return
        while not self._line.up():
            await self._watch.sleep("uplink", _LOOK_MS)
        if self._envelope.seq:  # the others lost it too: not all of them in the same second
            await self._wait(backoff.wait_ms(1, self._random))

    async def _wait(self, wait_ms):
        self._tell("wait", (wait_ms, self.failures))
        await self._watch.sleep("uplink", wait_ms)

    async def _idle(self):
        left_ms = max(0, self._beat_due_ms - self._clock.up_ms())
        self._watch.back_in("uplink", left_ms)
        self._news.clear()
        try:
            await asyncio.wait_for(self._news.wait(), left_ms // 1000 + 1)
        except asyncio.TimeoutError:
            pass

    async def run_once(self):
        """One attempt. Returns how long to wait before the next, in ms; 0 after success."""
        self._watch.back_in("uplink", _EXCHANGE_MS)
        gc.collect()
        try:
            batch = self._batch()
            body = self._body(batch)
            began_ms = self._clock.up_ms()
            answer = await self._line.exchange(body)
            return self._act(answer, batch[: body.taken], self._clock.up_ms() - began_ms)
        except MemoryError:
            gc.collect()
            self._count = max(1, self._count // 2)
            return self._fail("out of memory")
        except OSError as err:
            return self._fail(err)

    # What is sent.

    def _has_work(self):
        return bool(len(self._outbox)) or self._beat_is_due()

    def _beat_is_due(self):
        return self._clock.up_ms() >= self._beat_due_ms

    def _batch(self):
        if self._suspect is not None or self._beat_is_due():
            return []
        count = self._halves[-1] if self._halves else self.max_count
        batch = self._outbox.batch(min(count, self._count), self.max_batch_bytes)
        if not batch and len(self._outbox):
            raise OSError("the outbox gives nothing of what it has")
        return batch

    def _body(self, batch):
        envelope = self._envelope.next(self._oldest_ms(batch))
        try:
            return wire.Body(envelope, [record for _, record in batch])
        except wire.Unreadable:
            self._bury_unreadable(batch)
            raise OSError("unreadable records")

    def _oldest_ms(self, batch):
        try:
            oldest = batch or self._outbox.batch(1, 1)
            return self._envelope.age_ms(*wire.stamp(oldest[0][1])) if oldest else None
        except wire.Unreadable:
            return None

    # What the answer means.

    def _act(self, answer, batch, round_trip_ms):
        asked_ms = seal.asked_ms(answer.retry_after, answer.signed, self._random)
        if not answer.counts:
            return self._fail("no answer of ours: %d" % answer.status, asked_ms)
        action, rejected, server_ms = wire.judge(answer.status, answer.body, len(batch))
        self._led.set("key", action == wire.KEY)
        if action == wire.STORED:
            return self._stored(batch, rejected, server_ms, round_trip_ms)
        if action == wire.REFUSED:
            return self._refused(batch, answer.status)
        if action == wire.KEY:
            return self._fail("key refused", max(asked_ms, backoff.at_cap_ms(self._random)))
        return self._fail("answer %d" % answer.status, asked_ms)

    def _stored(self, batch, rejected, server_ms, round_trip_ms):
        if server_ms is not None:
            self._clock.learn(server_ms, slack_ms=round_trip_ms)
        self._envelope.acknowledged()
        self._acknowledge(batch, rejected)
        self._bury_suspect()
        self.failures = 0
        self._count = min(self.max_count, self._count + _MORE)
        if batch and self._halves:
            self._halves.pop()
        self._beat_due_ms = self._clock.up_ms() + self.heartbeat_ms
        return 0

    def _acknowledge(self, batch, rejected):
        # If the flash fails here the same batch goes out again, as duplicates: after a wait.
        kept = [pair for index, pair in enumerate(batch) if index not in rejected]
        if kept:
            self._tell("acked", [wire.reading_id(record) for _, record in kept])
            self._outbox.remove([key for key, _ in kept])
        for index in sorted(rejected):
            self._bury(batch[index], rejected[index])

    def _refused(self, batch, status):
        self._tell("log", "refused: %d for %d readings" % (status, len(batch)))
        self._envelope.retries += 1
        if len(batch) > 1:
            if self._halves:
                self._halves.pop()
            self._halves += [len(batch) - len(batch) // 2, len(batch) // 2]
        elif batch:
            self._suspect = batch[0][0]
        else:
            # Even the empty envelope is refused: the fault is not the reading's.
            self._suspect = None
            return backoff.at_cap_ms(self._random)
        return backoff.wait_ms(1, self._random)

    def _fail(self, why, at_least_ms=0):
        self._tell("log", "not sent: %s" % why)
        self._envelope.retries += 1
        self.failures += 1
        return max(backoff.wait_ms(self.failures, self._random), at_least_ms)

    # What nobody will ever store.

    def _bury_suspect(self):
        # The empty envelope went through, so the fault is the reading's; if the outbox has
        # not dropped it meanwhile, being full.
        if self._suspect is None:
            return
        oldest = self._outbox.batch(1, 1)
        if oldest and oldest[0][0] == self._suspect:
            self._bury(oldest[0], "refused")
            if self._halves:
                self._halves.pop()
        self._suspect = None

    def _bury(self, pair, reason):
        self._tell("dead", wire.reading_id(pair[1]))
        self._outbox.bury(pair[0], reason)

    def _bury_unreadable(self, batch):
        for key, record in batch:
            try:
                wire.reading(record)
            except wire.Unreadable as err:
                self._tell("log", "record %d buried: %s" % (key, err))
                self._outbox.bury(key, str(err))
