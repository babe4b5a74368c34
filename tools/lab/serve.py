"""`python -m tools.lab.serve …`: `gateway serve` with the kinds of the experiments as well.

Takes the flags of `gateway serve`.
"""

import asyncio
import sys

from gateway import app, cli, log
from tools.lab.kinds import REGISTRY


def main(argv: list[str]) -> int:
    args = cli.parser().parse_args(["serve", *argv])
    config = cli.config_of(args)
    log.configure(config.log_level, config.log_format)
    return asyncio.run(app.serve(config, registry=REGISTRY))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
