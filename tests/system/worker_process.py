"""`python -m tests.system.worker_process DB WORKERS [--lease-ms N] [--serve]`, with tests' kinds.

A short lease lets a test see in seconds what takes a quarter of a minute.
"""

import argparse
import asyncio
import sys

from gateway import lease, log
from gateway.config import Config
from gateway.store import jobs
from gateway.work import work

KINDS = "tests.system.job_kinds:registry"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("db")
    parser.add_argument("workers", type=int)
    parser.add_argument("--lease-ms", type=int, default=jobs.LEASE_MS)
    parser.add_argument("--serve", action="store_true")
    args = parser.parse_args()
    jobs.LEASE_MS = args.lease_ms
    lease.RENEW_S = args.lease_ms / 3000
    lease.LOOK_S = min(lease.LOOK_S, lease.RENEW_S / 2)
    log.configure("info", "text")
    config = Config(db=args.db, workers=args.workers, port=0, open=True, drain_timeout_s=2.0)
    if not args.serve:
        return asyncio.run(work(config, KINDS))
    from gateway import app  # the whole of the web: most tests need nothing of it

    return asyncio.run(app.serve(config, registry=KINDS))


if __name__ == "__main__":
    sys.exit(main())
