"""Every state of a job and every move between them. The one table; SQL and docs are held to it.

Pure. `store/jobs.py` makes each move with one statement whose WHERE names the state it leaves;
the tests try every verb in every state against this table.
"""

from enum import StrEnum


class State(StrEnum):
    """Where a job stands, as it is written in the database and on the wire."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    DISCARDED = "discarded"


class Verb(StrEnum):
    """What can be done to a job, and in brackets who does it."""

    CLAIM = "claim"  # a worker takes it, with a token
    RENEW = "renew"  # its worker is still there
    FINISH = "finish"  # its worker did it
    FAIL = "fail"  # its worker could not
    SNOOZE = "snooze"  # its worker wants it later; no try is counted
    RELEASE = "release"  # its worker stops; no try is counted
    DROP = "drop"  # its worker has seen that it was cancelled
    RESCUE = "rescue"  # the reaper: its worker is gone
    CANCEL = "cancel"  # a person: do not do it
    RETRY = "retry"  # a person: try again
    DISCARD = "discard"  # a person: let it be


MOVES: dict[State, dict[Verb, frozenset[State]]] = {
    State.PENDING: {
        Verb.CLAIM: frozenset({State.RUNNING}),
        Verb.CANCEL: frozenset({State.DISCARDED}),
    },
    State.RUNNING: {
        Verb.RENEW: frozenset({State.RUNNING}),
        Verb.FINISH: frozenset({State.DONE}),
        Verb.FAIL: frozenset({State.PENDING, State.FAILED}),
        Verb.SNOOZE: frozenset({State.PENDING}),
        Verb.RELEASE: frozenset({State.PENDING}),
        Verb.DROP: frozenset({State.DISCARDED}),
        Verb.RESCUE: frozenset({State.PENDING, State.FAILED, State.DISCARDED}),
        Verb.CANCEL: frozenset({State.RUNNING}),  # asked for; its worker sees it at the renewal
    },
    State.DONE: {},
    State.FAILED: {
        Verb.RETRY: frozenset({State.PENDING}),
        Verb.DISCARD: frozenset({State.DISCARDED}),
    },
    State.DISCARDED: {},
}

FINAL = frozenset({State.DONE, State.FAILED, State.DISCARDED})


def may(state: State, verb: Verb) -> bool:
    """Return whether the verb is a move from the state."""
    return verb in MOVES[state]


def diagram() -> str:
    """Return the moves as a Mermaid state diagram: `docs/states.md` holds exactly this."""
    lines = ["stateDiagram-v2", "    [*] --> pending: enqueue"]
    for state, moves in MOVES.items():
        for verb, targets in moves.items():
            lines += [f"    {state} --> {target}: {verb}" for target in sorted(targets)]
    lines += [f"    {state} --> [*]: prune" for state in State if state in FINAL]
    return "\n".join(lines) + "\n"
