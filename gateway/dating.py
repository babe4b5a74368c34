"""When a reading was taken, as well as can be known: docs/protocol.md, "Dating". Pure."""

from typing import NamedTuple

from gateway.model import MAX_AT_MS, Envelope, Reading

MAX_CLOCK_ERROR_MS = 5 * 60 * 1000


class Dated(NamedTuple):
    """An instant (ms, Unix epoch, UTC), how it is known, and what was sent if it was corrected."""

    at_ms: int
    clock: str
    sent_at_ms: int | None = None


def date(reading: Reading, envelope: Envelope, received_ms: int) -> Dated:
    """Return the instant of a reading that was received at `received_ms`.

    `clock` is "synced" (the board knew), "corrected" (its clock was off by more than 5 minutes),
    "estimated" (from its uptime), or "none" (the time of receipt).
    """
    if reading.at_ms is not None:
        sent_ms = envelope.sent_ms
        if sent_ms is None or abs(sent_ms - received_ms) <= MAX_CLOCK_ERROR_MS:
            return Dated(reading.at_ms, "synced")
        at_ms = received_ms - (sent_ms - reading.at_ms)
        return Dated(min(max(at_ms, 0), MAX_AT_MS), "corrected", reading.at_ms)
    up_ms, now_up_ms = reading.up_ms, envelope.up_ms
    same_boot = reading.boot is not None and reading.boot == envelope.boot
    if same_boot and up_ms is not None and now_up_ms is not None and up_ms <= now_up_ms:
        return Dated(max(received_ms - (now_up_ms - up_ms), 0), "estimated")
    return Dated(received_ms, "none")
