import asyncio
import json

import clock
import envelope
import lost
import outbox
import post
import uplink
import watch
import wire

_BOOT = "7f3a17c212"
_NOW_MS = 1764529200000


class Light:
    def __init__(self):
        self.key = False

    def set(self, condition, holds):
        assert condition == "key"
        self.key = holds

    async def again(self):
        pass


class Report:
    text = None

    def forget(self, sent):
        pass


class Gateway:
    # The line, and what answers on it: `answer(batch)` gives a post.Answer or raises.
    def __init__(self, answer):
        self.answer = answer
        self.batches = []
        self.is_up = True

    def up(self):
        return self.is_up

    async def exchange(self, body):
        batch = json.loads(b"".join(body.pieces()))
        self.batches.append(batch)
        return self.answer(batch)


class Board:
    # A whole uplink over a real outbox; time is only what it sleeps.
    def __init__(self, answer, readings=0, max_count=1000, random=0.0):
        self.ms = 0
        self.told = []
        self.waits = []
        self.clock = clock.Clock(lambda: self.ms, lambda a, b: a - b)
        self.lost = lost.Lost()
        self.outbox = outbox.Outbox("outbox", max_bytes=200_000, max_count=max_count, free_blocks=1)
        self.gateway = Gateway(answer)
        self.light = Light()
        self.news = asyncio.Event()
        self.watch = watch.Watch(self.clock.up_ms, self.sleep_ms)
        self.envelope = envelope.Envelope("d", _BOOT, self.clock, self.lost, Report(), dict)
        self.uplink = uplink.Uplink(
            self.outbox,
            self.gateway,
            self.envelope,
            self.clock,
            lambda: random,
            self.watch,
            self.light,
            self.news,
            self.tell,
        )
        self.ids = []
        for _ in range(readings):
            self.put()

    def put(self):
        self.ids.append(f"d-{_BOOT}-{len(self.ids) + 1}")
        return self.outbox.put(wire.record(self.ids[-1], "s", len(self.ids), "Cel", _NOW_MS))

    def tell(self, event, value):
        if event != "log":
            self.told.append((event, value, len(self.outbox)))

    async def sleep_ms(self, ms):
        self.ms += ms
        await asyncio.sleep(0)

    def once(self):
        wait_ms = asyncio.run(self.uplink.run_once())
        self.ms += wait_ms
        self.waits.append(wait_ms)
        return wait_ms

    def drain(self, most=300):
        for _ in range(most):
            if not len(self.outbox):
                return
            self.once()
        raise AssertionError(f"{len(self.outbox)} readings never left")

    def kept(self):
        return [wire.reading_id(record) for _, record in self.outbox.batch(10_000, 1 << 30)]

    def events(self, name):
        return [value for event, value, _ in self.told if event == name]


def _answer(status, fields=None, counts=True, signed=True, retry_after=None):
    body = b"{}" if fields is None else json.dumps(fields).encode()
    return post.Answer(status, body, counts, signed, retry_after)


def _verdicts(batch, rejected=()):
    stored = len(batch["readings"]) - len(rejected)
    return {
        "stored": stored,
        "duplicates": 0,
        "rejected": [{"index": at, "id": None, "reason": "no"} for at in rejected],
        "server_ms": _NOW_MS,
    }


def _stores(batch):
    return _answer(200, _verdicts(batch))


def _refuses_all(batch):
    return _answer(422)


def _refuses(poison):
    # Refuses every body with such an id in it, as a gateway does with what it can not decode.
    def answer(batch):
        bad = [one for one in batch["readings"] if one["id"] in poison]
        return _answer(400) if bad else _stores(batch)

    return answer


def _fails(err):
    def answer(batch):
        raise err

    return answer


def _sent_ids(board):
    return [[one["id"] for one in batch["readings"]] for batch in board.gateway.batches]


def test_a_boot_says_hello_and_then_sends_the_oldest_first():
    board = Board(_stores, readings=3)
    assert board.once() == 0
    assert board.once() == 0
    assert _sent_ids(board) == [[], board.ids]
    assert board.kept() == []


def test_what_was_stored_is_told_before_it_is_removed():
    board = Board(_stores, readings=3)
    board.drain()
    assert board.told == [("acked", board.ids, 3)]


def test_the_rejected_are_buried_and_the_rest_removed():
    board = Board(lambda batch: _answer(200, _verdicts(batch, [1][: len(batch["readings"])])))
    for _ in range(3):
        board.put()
    board.drain()
    assert board.events("acked") == [[board.ids[0], board.ids[2]]]
    assert board.told[-1] == ("dead", board.ids[1], 1)
    assert board.outbox.dead == 1


def test_a_batch_has_at_most_64_readings_and_the_next_goes_at_once():
    board = Board(_stores, readings=100)
    board.drain()
    assert [len(ids) for ids in _sent_ids(board)] == [0, 64, 36]
    assert board.waits == [0, 0, 0]


def test_seq_goes_up_with_each_attempt():
    board = Board(_fails(OSError(111)), readings=1)
    for _ in range(3):
        board.once()
    assert [batch["seq"] for batch in board.gateway.batches] == [1, 2, 3]


def test_no_oserror_removes_anything_whatever_it_carries():
    for err in (
        OSError(-202),
        OSError(104),
        OSError(113),
        OSError(116),
        OSError(118),
        OSError(119),
        OSError(128),
        OSError("Wifi Internal Error"),
        OSError(),
        OSError(12, "ENOMEM"),
    ):
        board = Board(_fails(err), readings=1)
        assert board.once() == 2000
        assert len(board.outbox) == 1
        board.outbox.remove([key for key, _ in board.outbox.batch(1, 1)])


def test_no_answer_but_a_verdict_that_adds_up_removes_anything():
    answers = [_answer(status) for status in (201, 204, 301, 404, 408, 425, 429, 500, 502, 503)]
    answers += [_answer(200, counts=False, signed=False), _answer(422, counts=False, signed=False)]
    answers += [_answer(200), _answer(200, {"stored": 7, "duplicates": 0, "rejected": []})]
    board = Board(_stores, readings=2)
    board.once()
    for at, answer in enumerate(answers):
        board.gateway.answer = lambda batch, answer=answer: answer
        assert board.once() >= 2000
        assert board.uplink.failures == at + 1
    assert board.kept() == board.ids
    assert board.told == []


def test_waits_grow_to_the_cap_and_begin_anew_after_success():
    board = Board(_fails(OSError(111)), readings=1, random=0.5)
    for _ in range(7):
        board.once()
    assert board.waits == [3000, 6000, 12000, 24000, 48000, 48000, 48000]
    board.gateway.answer = _stores
    board.once()
    board.gateway.answer = _fails(OSError(111))
    assert board.once() == 3000


def test_the_larger_of_retry_after_and_backoff_wins():
    board = Board(lambda batch: _answer(503, retry_after="7"), readings=1)
    assert [board.once() for _ in range(4)] == [7000, 7000, 8000, 16000]


def test_a_forger_can_not_send_a_board_to_sleep_for_long():
    forged = _answer(503, counts=False, signed=False, retry_after="86400")
    board = Board(lambda batch: forged, readings=1)
    assert board.once() == 300_000
    board.gateway.answer = lambda batch: _answer(503, retry_after="86400")
    assert board.once() == 3_600_000


def test_a_refused_key_keeps_everything_waits_at_the_cap_and_lights_the_led():
    for status in (401, 403):
        board = Board(lambda batch, status=status: _answer(status), readings=1, random=0.25)
        assert board.once() == 40000
        assert board.light.key
        assert len(board.outbox) == 1
        board.gateway.answer = _stores
        board.drain()
        assert not board.light.key


def test_a_poison_anywhere_in_a_batch_costs_only_itself():
    for at in (0, 1, 6, 11, 12):
        board = Board(_stores, readings=13)
        poison = board.ids[at]
        board.gateway.answer = _refuses([poison])
        board.drain()
        acked = [one for ids in board.events("acked") for one in ids]
        assert acked == [one for one in board.ids if one != poison]
        assert board.events("dead") == [poison]


def test_several_poisons_in_a_batch_cost_only_themselves():
    board = Board(_stores, readings=40)
    poison = [board.ids[at] for at in (0, 1, 17, 38, 39)]
    board.gateway.answer = _refuses(poison)
    board.drain()
    assert board.events("dead") == poison
    assert sum(len(ids) for ids in board.events("acked")) == 35


def test_between_the_halves_is_the_initial_wait_and_the_failure_count_stays():
    board = Board(_fails(OSError(111)), readings=8, random=0.5)
    for _ in range(3):
        board.once()
    board.gateway.answer = _stores
    board.uplink._beat_due_ms = 1 << 60  # the next attempt is of readings
    board.gateway.answer = _refuses(board.ids)
    assert [board.once() for _ in range(4)] == [3000] * 4
    assert [len(ids) for ids in _sent_ids(board)[-4:]] == [8, 4, 2, 1]
    assert board.uplink.failures == 3


def test_before_a_single_one_is_buried_the_empty_envelope_is_tried():
    board = Board(_stores, readings=1)
    board.once()
    board.gateway.answer = _refuses(board.ids)
    board.once()
    assert board.outbox.dead == 0
    assert board.once() == 0
    assert _sent_ids(board) == [[], board.ids, []]
    assert board.told == [("dead", board.ids[0], 1)]
    assert board.outbox.dead == 1


def test_a_gateway_that_refuses_even_the_empty_envelope_costs_no_reading():
    board = Board(_stores, readings=5)
    board.once()
    board.gateway.answer = _refuses_all
    for _ in range(30):
        board.once()
    assert board.kept() == board.ids
    assert board.told == []
    assert board.waits.count(32000) >= 8  # the cap, each time the empty one was refused
    board.gateway.answer = _stores
    board.drain()
    assert sum(len(ids) for ids in board.events("acked")) == 5


def test_no_answer_to_the_empty_envelope_proves_nothing():
    board = Board(_stores, readings=1)
    board.once()
    board.gateway.answer = _refuses(board.ids)
    board.once()
    board.gateway.answer = _fails(OSError(104))
    for _ in range(3):
        board.once()
    assert board.kept() == board.ids
    board.gateway.answer = _refuses(board.ids)
    board.drain()
    assert _sent_ids(board)[-1] == []
    assert board.events("dead") == board.ids


def test_a_suspect_that_the_full_outbox_dropped_meanwhile_is_not_buried():
    board = Board(_stores, readings=1, max_count=1)
    board.once()
    board.gateway.answer = _refuses(board.ids[:1])
    board.once()
    board.put()
    board.drain()
    assert board.events("dead") == []
    assert board.events("acked") == [[board.ids[1]]]


def test_a_gateway_that_takes_only_small_bodies_gets_small_bodies():
    board = Board(lambda batch: _answer(413) if len(batch["readings"]) > 5 else _stores(batch))
    for _ in range(64):
        board.put()
    board.drain()
    assert board.events("dead") == []
    assert [one for ids in board.events("acked") for one in ids] == board.ids
    assert board.waits.count(2000) <= 15


def test_a_heartbeat_goes_when_nothing_was_sent_for_five_minutes():
    board = Board(_stores, readings=1)
    board.once()
    board.ms += 100_000
    board.once()
    board.ms += 299_999
    assert not board.uplink._has_work()
    board.ms += 1
    assert board.uplink._has_work()
    board.once()
    assert _sent_ids(board) == [[], board.ids, []]


def test_time_is_learned_from_the_answer():
    board = Board(_stores)
    board.once()
    assert board.clock.now_ms() == _NOW_MS


def test_what_was_lost_is_said_until_acknowledged():
    board = Board(_fails(OSError(111)))
    board.lost.add(f"d-{_BOOT}-7")
    board.once()
    board.gateway.answer = _stores
    board.once()
    board.put()
    board.once()
    assert ["lost" in batch for batch in board.gateway.batches] == [True, True, False]


def test_a_reading_put_while_a_batch_travels_is_not_removed_with_it():
    board = Board(_stores, readings=2)
    board.once()

    def answer(batch):
        board.put()
        return _stores(batch)

    board.gateway.answer = answer
    board.once()
    assert board.kept() == [board.ids[2]]


def test_too_little_memory_makes_the_batch_smaller_and_loses_nothing():
    board = Board(_stores, readings=40)
    board.once()
    board.gateway.answer = _fails(MemoryError())
    for _ in range(3):
        assert board.once() >= 2000
    board.gateway.answer = _stores
    board.drain()
    assert [len(ids) for ids in _sent_ids(board)] == [0, 40, 32, 16, 8, 12, 16, 4]
    assert sum(len(ids) for ids in board.events("acked")) == 40


def test_a_record_that_nobody_can_read_blocks_nothing():
    board = Board(_stores, readings=2)
    board.outbox.put(b"\xff not a record")
    board.put()
    board.drain()
    assert [one for ids in board.events("acked") for one in ids] == board.ids
    assert board.outbox.dead == 1


def test_an_outbox_that_gives_nothing_of_what_it_has_makes_no_fast_loop():
    board = Board(_stores, readings=2)
    board.once()
    board.outbox.batch = lambda count, nbytes: []
    assert [board.once() for _ in range(2)] == [2000, 4000]


def test_a_flash_that_fails_at_the_removal_makes_no_fast_loop():
    board = Board(_stores, readings=2)
    board.once()
    remove = board.outbox.remove
    board.outbox.remove = _fails(OSError(5))
    assert board.once() == 2000
    assert board.once() == 4000
    board.outbox.remove = remove
    board.drain()
    assert _sent_ids(board) == [[], board.ids, board.ids, board.ids]


def _run(board, enough):
    # The whole loop, until `enough()`; nothing here takes real time but the idle wait.
    async def until():
        loop = asyncio.create_task(board.uplink.run())
        while not enough():
            await asyncio.sleep(0)
        loop.cancel()

    asyncio.run(until())


def test_new_readings_during_a_wait_do_not_shorten_it():
    board = Board(_fails(OSError(111)), readings=1)
    slept = []

    async def sleep_ms(ms):
        slept.append((ms, len(board.gateway.batches)))
        board.put()
        board.news.set()
        board.ms += ms
        await asyncio.sleep(0)

    board.watch = board.uplink._watch = watch.Watch(board.clock.up_ms, sleep_ms)
    _run(board, lambda: len(slept) >= 4)
    assert slept[:4] == [(2000, 1), (4000, 2), (8000, 3), (16000, 4)]


def test_every_wait_is_told_with_the_failures_before_it():
    board = Board(_fails(OSError(111)), readings=1)
    _run(board, lambda: len(board.gateway.batches) >= 4)
    assert board.events("wait")[:3] == [(2000, 1), (4000, 2), (8000, 3)]


def test_an_idle_uplink_sends_at_once_what_the_sampler_puts():
    board = Board(_stores)

    def enough():
        if len(board.gateway.batches) == 1 and not board.ids:
            board.put()
            board.news.set()
        return len(board.gateway.batches) == 2

    _run(board, enough)
    assert _sent_ids(board) == [[], board.ids]
    assert board.ms == 0


def test_without_wifi_nothing_is_tried_and_afterwards_not_all_boards_at_once():
    board = Board(_stores, readings=1)
    board.once()
    board.gateway.is_up = False

    def enough():
        board.gateway.is_up = board.ms >= 5000
        return len(board.gateway.batches) == 2

    _run(board, enough)
    assert board.events("wait") == [(2000, 0)]
    assert board.ms == 7000
