"""Puts together what finds out who asks: keys, tokens, sessions, forms, the log-in."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from gateway.config import Config
from gateway.keys import Keys
from gateway.store import devices, sessions
from gateway.store.database import Database
from gateway.web.body import BodyReader
from gateway.web.forms import Forms
from gateway.web.gate import Bearer, Gate
from gateway.web.keyring import KeyRing
from gateway.web.login import Login
from gateway.web.refusals import Refusals
from gateway.web.tokens import Tokens
from gateway.web.tries import Tries


class Access(NamedTuple):
    gate: Gate
    forms: Forms
    login: Login
    bodies: BodyReader


def access(
    db: Database,
    config: Config,
    keys: Keys,
    key_refused: Callable[[str | None], None],
    registry: CollectorRegistry,
    now_ms: Callable[[], int],
) -> Access:
    """Return the parts, joined.

    Args:
        key_refused: told of each refusal; see `Refusals`.
        registry: of the metrics.
        now_ms: the wall clock, Unix epoch, UTC.
    """
    bodies, tries = BodyReader(config.body_timeout_s), Tries()
    refusals = Refusals(key_refused, registry)
    ring = KeyRing(keys, partial(devices.identity, db), partial(devices.take_up, db))
    bearers, browsers = _bearers(db), _browsers(db, now_ms)
    gate = Gate(config, keys.operator_token, ring, bearers, browsers, refusals, tries)
    login = Login(db, bodies, tries, browsers, now_ms)
    return Access(gate, Forms(bodies, keys.master), login, bodies)


def _bearers(db: Database) -> Tokens[Bearer]:
    async def whose(token: str) -> Bearer | None:
        found = await devices.whose(db, sessions.hashed(token))
        return None if found is None else Bearer(*found)

    return Tokens(whose)


def _browsers(db: Database, now_ms: Callable[[], int]) -> Tokens[bool]:
    async def is_open(secret: str) -> bool | None:
        return await sessions.is_open(db, secret, now_ms()) or None

    return Tokens(is_open)
