import asyncio

import safe
import watch


class Memory:
    def __init__(self):
        self.kept = b""

    def __call__(self, *data):
        if data:
            self.kept = data[0]
        return self.kept


def _boot(memory, power=False):
    return safe.Starts(memory, power)


def test_five_boots_in_a_row_that_ended_soon_lead_to_safe_mode():
    memory = Memory()
    seen = [_boot(memory).safe for _ in range(7)]
    assert seen == [False] * 5 + [True] * 2


def test_a_boot_that_lasted_begins_the_count_anew():
    memory = Memory()
    for _ in range(4):
        _boot(memory)
    _boot(memory).calm()
    assert [_boot(memory).safe for _ in range(6)] == [False] * 5 + [True]


def test_a_power_cut_is_no_crash():
    memory = Memory()
    assert not any(_boot(memory, power=True).safe for _ in range(20))


def test_rtc_memory_of_somebody_else_counts_nothing():
    memory = Memory()
    for kept in (b"XY\xff", b"FP", b"", b"FP\x09\x09", bytes(2048)):
        memory.kept = kept
        assert not _boot(memory).safe


def test_the_count_does_not_run_over():
    memory = Memory()
    for _ in range(300):
        last = _boot(memory)
    assert last.safe


class Enough(Exception):
    pass


def _live(starts, ms):
    # Runs the loop for so long; gives the instants at which it reset the board.
    now, resets = [0], []

    async def sleep_ms(slept_ms):
        now[0] += slept_ms
        if now[0] > ms:
            raise Enough

    try:
        asyncio.run(
            starts.run(watch.Watch(lambda: now[0], sleep_ms), lambda: resets.append(now[0]))
        )
    except Enough:
        return resets
    raise AssertionError("the loop ended")


def test_a_boot_lasts_when_it_has_lasted_a_minute():
    for ms, counted in ((59_999, 1), (60_000, 0)):
        memory = Memory()
        _live(_boot(memory), ms)
        assert memory.kept[2] == counted


def test_safe_mode_ends_after_an_hour_to_try_again():
    memory = Memory()
    for _ in range(6):
        last = _boot(memory)
    assert _live(last, 3_700_000) == [3_660_000]
    assert not _boot(memory).safe


def test_without_safe_mode_nothing_is_reset():
    assert _live(_boot(Memory()), 10_000_000) == []


def test_the_stand_in_for_an_outbox_is_empty():
    none = safe.NoOutbox()
    assert (len(none), none.batch(64, 8192), none.dropped, none.dead) == (0, [], 0, 0)
