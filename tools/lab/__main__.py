"""`python -m tools.lab [N …]`: runs the experiments in order, says what they found.

Exit code 0 only if every claim held.
"""

import argparse
import asyncio
import importlib
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from gateway.languages import LANGUAGES
from tools.children import Children
from tools.lab import report, terminal
from tools.lab.finding import Finding
from tools.lab.site import Site

EXPERIMENTS = {
    1: "tools.lab.front_or_behind",
    2: "tools.lab.promise",
    3: "tools.lab.two_workers",
    4: "tools.lab.worker_that_died",
    5: "tools.lab.curve",
    6: "tools.lab.together_or_spread",
    7: "tools.lab.twice_is_once",
    8: "tools.lab.received_is_not_done",
    9: "tools.lab.how_many_workers",
    10: "tools.lab.two_limits",
    11: "tools.lab.books_that_balance",
    12: "tools.lab.three_clocks",
}
QUICK = 0.2


class Experiment(NamedTuple):
    title: str
    run: Callable[[Site], Awaitable[Finding]]

    @classmethod
    def load(cls, name: str) -> "Experiment":
        """Return the experiment of that module; only now is it loaded."""
        module = importlib.import_module(name)
        return cls(module.TITLE, module.run)


async def find(experiment: Experiment, seed: int, scale: float, language: str) -> Finding:
    """Run it in a folder of its own. If it breaks down, that is a claim that does not hold."""
    with tempfile.TemporaryDirectory(prefix="fieldpost-lab-") as folder:
        async with aiohttp.ClientSession() as http, Children() as children:
            site = Site(Path(folder), children, http, seed, scale, language)
            try:
                return await experiment.run(site)
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
                broken = Finding(site.gettext(experiment.title))
                broken.claim(site.gettext("It came to its end (%(error)s)", error=said), False)
                return broken


async def find_all(names: Mapping[int, str], args: argparse.Namespace) -> dict[int, Finding]:
    """Run them one after another, and print each finding as it comes."""
    found = {}
    for number, name in names.items():
        experiment = Experiment.load(name)
        found[number] = await find(experiment, args.seed, args.scale, args.lang)
        print("\n".join(terminal.lines(found[number], number)), flush=True)
    return found


def summary(found: dict[int, Finding], args: argparse.Namespace) -> dict[str, Any]:
    """Return all that was found, as JSON has it."""
    return {
        "holds": all(finding.holds for finding in found.values()),
        "seed": args.seed,
        "scale": args.scale,
        "experiments": [
            {
                "number": number,
                "title": finding.title,
                "holds": finding.holds,
                "claims": [{"text": one.text, "holds": one.holds} for one in finding.claims],
                "figures": finding.figures,
            }
            for number, finding in found.items()
        ],
    }


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.lab", description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, metavar="N",
                        help="its number; all if none is named")  # fmt: skip
    parser.add_argument("--html", type=Path, metavar="FILE", help="write them as one page too")
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    parser.add_argument("--seed", type=int, default=1, help="of all the chance that they take")
    parser.add_argument("--lang", choices=LANGUAGES, default=LANGUAGES[0])
    parser.add_argument("--quick", dest="scale", action="store_const", const=QUICK, default=1.0,
                        help="fewer and shorter, for a first look")  # fmt: skip
    return parser


def main(argv: list[str], experiments: Mapping[int, str] = EXPERIMENTS) -> int:
    """Return the exit code: 0 if all claims hold. `experiments`: their modules, by number."""
    args = parser().parse_args(argv)
    if unknown := set(args.numbers) - set(experiments):
        there = ", ".join(map(str, experiments))
        parser().error(f"there is no experiment {min(unknown)}; there are {there}")
    wanted = {number: experiments[number] for number in args.numbers or experiments}
    found = asyncio.run(find_all(wanted, args))
    if args.html:
        args.html.write_text(report.page(found, args.lang), encoding="utf-8")
    if args.json:
        print(json.dumps(summary(found, args)))
    return 0 if all(finding.holds for finding in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
