"""Questions to the person in front of the terminal, if there is one."""

import getpass
import sys
from collections.abc import Sequence

from tools.flash.trouble import Trouble


def somebody_there() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def choose(question: str, answers: Sequence[str]) -> str:
    """Let the person choose one of these, by its number."""
    for number, answer in enumerate(answers, 1):
        print(f"  {number}  {answer}")
    while True:
        typed = input(f"{question} [1-{len(answers)}] ").strip()
        if typed.isdigit() and 1 <= int(typed) <= len(answers):
            return answers[int(typed) - 1]


def agree(question: str, *, yes: bool) -> bool:
    """Return whether the person agrees; `yes` was said on the command line.

    Raises:
        Trouble: nobody is there to ask.
    """
    if yes:
        return True
    if not somebody_there():
        raise Trouble("unanswered", question=question)
    return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}


def text(question: str) -> str:
    return input(question).strip()


def secret(question: str) -> str:
    """Ask for what must not be seen; empty if there is nobody to ask."""
    return getpass.getpass(question).strip() if somebody_there() else ""
