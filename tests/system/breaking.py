"""An experiment that breaks down."""

from tools.lab.finding import Finding
from tools.lab.site import Site

TITLE = "Breaking"


async def run(site: Site) -> Finding:
    raise TimeoutError("not within 1 s: the end")
