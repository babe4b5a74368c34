"""An experiment whose claim does not hold."""

from tools.lab.finding import Bars, Finding, Table
from tools.lab.site import Site

TITLE = "Unheld"


async def run(site: Site) -> Finding:
    finding = Finding(site.gettext(TITLE))
    finding.say("A text <script>alert(1)</script>")
    finding.show(Table(("one", "two"), [("1", "2")]))
    finding.show(Bars("Bars", ["a", "b"], {"first": [1.5, 0.0], "second": [2.0, 3.0]}, "s"))
    finding.claim("This holds", True)
    finding.claim("This does not", False)
    finding.figures = {"count": 7}
    return finding
