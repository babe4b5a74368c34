"""The kinds of alarms: what each means and what to do, in English. Pure.

The texts are message ids: the page says them in the reader's language.
"""

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    DEVICE_SILENT = "device_silent"
    QUEUE_STALLED = "queue_stalled"
    JOB_FAILED = "job_failed"
    GAP = "gap"
    CONFLICT = "conflict"
    DROPS_REPORTED = "drops_reported"
    POSSIBLE_CLONE = "possible_clone"
    DISK_LOW = "disk_low"
    CLOCK_STEPPED = "clock_stepped"
    KEY_REFUSED = "key_refused"
    DATABASE_DAMAGED = "database_damaged"


class Ends(StrEnum):
    """How an alarm ends."""

    BY_ITSELF = "by itself"  # when it is no longer true, and then only
    QUIET = "quiet"  # when it did not happen again for a while, or by a person
    BY_A_PERSON = "by a person"  # and never otherwise


class Text(NamedTuple):
    """`title` names it, `means` says what is true, `do` what a person can do about it."""

    title: str
    means: str
    do: str
    ends: Ends


def N_(text: str) -> str:
    """Mark a text as one to be translated."""
    return text


TEXTS = {
    Kind.DEVICE_SILENT: Text(
        N_("A device is silent"),
        N_("It missed three of its messages. What it reads meanwhile waits in its outbox."),
        N_("See whether it has power and Wi-Fi. It closes when the device is heard again."),
        Ends.BY_ITSELF,
    ),
    Kind.QUEUE_STALLED: Text(
        N_("The queue is stalled"),
        N_("Jobs are due, and none has ended for a while. What was asked for is not being done."),
        N_("See whether workers run: `workers` in the configuration, or `python -m gateway work`."),
        Ends.BY_ITSELF,
    ),
    Kind.JOB_FAILED: Text(
        N_("A job failed"),
        N_("It was tried as often as it may be, and will not be tried again by itself."),
        N_("Read its error; then try it again or discard it. It closes with the last one failed."),
        Ends.BY_ITSELF,
    ),
    Kind.GAP: Text(
        N_("Readings are missing"),
        N_("Later ones of the same start of the device have arrived, these have not."),
        N_("If the device has them it will send them. It closes when they arrive, or when the"
           " device says that they are lost."),
        Ends.BY_ITSELF,
    ),
    Kind.CONFLICT: Text(
        N_("An id was used for two readings"),
        N_("The first one is stored, the other is in quarantine. Two devices may have one name, or"
           " a device's flash was set back."),
        N_("Look at the device's quarantine; give each device a name of its own."),
        Ends.QUIET,
    ),
    Kind.DROPS_REPORTED: Text(
        N_("A device has dropped readings"),
        N_("Its outbox was full, so the oldest readings made way for new ones. They are gone."),
        N_("See why it could not deliver for so long; make its outbox larger, or its period"
           " longer."),
        Ends.QUIET,
    ),
    Kind.POSSIBLE_CLONE: Text(
        N_("Two devices may share one name"),
        N_("Messages of two different starts of this device come in turns, as one device can not"
           " send them."),
        N_("Find the second device, and give it a name and a key of its own."),
        Ends.QUIET,
    ),
    Kind.DISK_LOW: Text(
        N_("The disk is nearly full"),
        N_("Below the floor `min_free_bytes` readings are put off, and wait in the devices."),
        N_("Make room on the gateway's disk, or keep readings for a shorter time."),
        Ends.BY_ITSELF,
    ),
    Kind.CLOCK_STEPPED: Text(
        N_("The gateway's clock was stepped"),
        N_("Instants written before and after it do not fit together. A machine that slept looks"
           " the same."),
        N_("See whether the time is right now, and that the machine keeps it by NTP."),
        Ends.QUIET,
    ),
    Kind.KEY_REFUSED: Text(
        N_("A key was refused"),
        N_("Somebody signs under this name with a key that is not this device's. Nothing of it was"
           " stored."),
        N_("If it is your device, flash it with the key that `devices add` prints; else look who"
           " is trying."),
        Ends.QUIET,
    ),
    Kind.DATABASE_DAMAGED: Text(
        N_("The database was damaged"),
        N_("It was moved aside and a new one was begun. What was stored before is not shown."),
        N_("Keep the damaged file, bring back a backup if there is one, see to the disk; then"
           " close this."),
        Ends.BY_A_PERSON,
    ),
}  # fmt: skip


def text_of(kind: str) -> Text:
    """Return the text of a kind; of one that a newer version made, its bare name."""
    if kind in TEXTS:
        return TEXTS[Kind(kind)]
    return Text(kind, "", "", Ends.BY_A_PERSON)


def may_be_closed(kind: str) -> bool:
    """Return whether a person may close it: one that is true would only open again."""
    return text_of(kind).ends is not Ends.BY_ITSELF
