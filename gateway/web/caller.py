"""Who a caller can be, and what each may: the table of docs/protocol.md, section 7."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Need(Enum):
    """What a resource asks of its caller."""

    NOTHING = "nothing"
    DELIVER = "deliver"  # readings
    ASK = "ask"  # for a job
    FOLLOW = "follow"  # jobs: an operator all of them, a device its own
    OPERATE = "operate"  # whatever else is under /v1; with the operator's cookie only to read
    ACT = "act"  # a form of the page: from a browser only with the field `csrf`
    KEEP_KEYS = "keep keys"  # make, renew and revoke those of devices


class Kind(Enum):
    """Whom a caller was found to be."""

    STRANGER = "stranger"
    DEVICE = "device"
    OPERATOR = "operator"
    OPEN = "open"  # a stranger whom open mode lets in


MAY = {
    Kind.STRANGER: {Need.NOTHING},
    Kind.DEVICE: {Need.NOTHING, Need.DELIVER},
    Kind.OPERATOR: set(Need),
    # Keys made while the door is open would let in whoever took one when it is shut again.
    Kind.OPEN: set(Need) - {Need.KEEP_KEYS},
}
MAY_WHO_MAY_ASK = {Need.ASK, Need.FOLLOW}

_READS = {"GET", "HEAD"}


class Signer(NamedTuple):
    """A device whose signature was right: what signs the answer to it."""

    key: bytes
    device: str
    nonce: str


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    Args:
        device: its name, where a device asks.
        signer: of a device that signed; None for one with a bearer token.
        may_ask: whether the device may ask for jobs.
        session: of an operator's browser, the secret in its cookie; None for the bearer of the
            operator's token.
    """

    kind: Kind
    device: str | None = None
    signer: Signer | None = None
    may_ask: bool = False
    session: str | None = None

    def may(self, need: Need, method: str) -> bool:
        """Return whether it may use a resource that needs this, with this method."""
        if self.session is not None and need not in (Need.NOTHING, Need.ACT):
            return method in _READS  # what a browser sends by itself never changes anything
        if self.may_ask and need in MAY_WHO_MAY_ASK:
            return True
        return need in MAY[self.kind]


STRANGER = Caller(Kind.STRANGER)
OPERATOR = Caller(Kind.OPERATOR)
OPEN = Caller(Kind.OPEN)
