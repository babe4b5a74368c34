"""What the page says of a job that nobody does."""

import asyncio
import html
import re
import time
from typing import NamedTuple

from tools.lab.finding import Finding, Table
from tools.lab.site import Gateway, Site

TITLE = "Received is not done"

_STALLED_AFTER_S = 8.0
_LOOK_S = 0.5
_SHORTLY_S = 1.0
_KIND = "lasting"

_TOKEN = re.compile(r'name="csrf" value="([^"]*)"')
_HEADLINE = re.compile(r"<p data-announce>(.*?)</p>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


class Said(NamedTuple):
    """What stands on two pages, word for word, so many seconds after the job was asked for."""

    after_s: float
    status: str
    job: str


class Reader:
    """Somebody who looks at the pages in his language."""

    def __init__(self, site: Site, gateway: Gateway) -> None:
        self._site = site
        self._gateway = gateway
        self._headers = {"Accept": "text/html", "Accept-Language": site.language}
        self._asked_at = 0.0
        self._job = ""

    async def ask(self) -> None:
        """Send the form that stands on the page, with the token that stands in it."""
        token = _TOKEN.search(await self._page("/status/ask"))
        assert token is not None
        fields = {"csrf": token[1], "kind": _KIND, "args": '{"seconds": 0.5}'}
        url = f"{self._gateway.url}/status/jobs"
        async with self._site.http.post(
            url, data=fields, headers=self._headers, allow_redirects=False
        ) as answer:
            assert answer.status == 303, await answer.text()
            self._job = answer.headers["Location"]
        self._asked_at = time.monotonic()

    async def look(self) -> Said:
        status, job = await self._page("/status"), await self._page(self._job)
        return Said(time.monotonic() - self._asked_at, headline(status), headline(job))

    async def until(self, status: str, is_said: bool) -> Said:
        """Look until the status page says so, or no longer; return what both say then."""

        async def holds() -> bool:
            return (status in (await self.look()).status) is is_said

        await self._site.until(holds, f"the page says {status!r}: {is_said}")
        return await self.look()

    async def _page(self, path: str) -> str:
        async with self._site.http.get(self._gateway.url + path, headers=self._headers) as answer:
            answer.raise_for_status()
            return await answer.text()


def headline(page: str) -> str:
    """Return the text of the page's one sentence."""
    found = _HEADLINE.search(page)
    assert found is not None, page
    return " ".join(html.unescape(_TAG.sub("", found[1])).split())


async def run(site: Site) -> Finding:
    after_s = max(3.0, _STALLED_AFTER_S * site.scale)
    config = site.folder / "stalled.toml"
    config.write_text(f"[alarms]\nlook_s = {_LOOK_S}\nstalled_after_s = {after_s}\n")
    gateway = await site.gateway("--config", config, "--workers", 0)
    reader, stalled = Reader(site, gateway), site.gettext("the queue is stalled")
    await reader.ask()
    await asyncio.sleep(_SHORTLY_S)  # this is what is looked at: the page a second later
    shortly = await reader.look()
    late = await reader.until(stalled, is_said=True)
    await gateway.stop()
    await gateway.start("--workers", 1)
    await gateway.ended([1])
    back = await reader.until(stalled, is_said=False)
    job = await gateway.job(1)
    return _tell(site, after_s, [shortly, late, back], (job or {})["state"])


def _tell(site: Site, stalled_after_s: float, said: list[Said], state: str) -> Finding:
    _ = site.gettext
    shortly, late, back = said
    stalled = _("the queue is stalled")
    finding = Finding(_(TITLE))
    finding.say(_(
        "There are no workers, and somebody asks for a job with the form on the page. It is"
        " received at once, as it always is; but nobody does it. A page that says \"all is well\""
        " then would lie. When a job is due and nothing gets on for %(s)s s, the page says so. (A"
        " gateway that nobody has told otherwise waits longer before it does.) What stands on the"
        " pages, word for word:", s=site.number(stalled_after_s, 1),
    ))  # fmt: skip
    whens = [_("shortly after"), _("after the threshold"), _("workers are back")]
    finding.show(Table(
        (_("when"), _("after"), _("page of the gateway"), _("page of the job")),
        [(when, f"{site.number(one.after_s, 1)} s", one.status, one.job)
         for when, one in zip(whens, said, strict=True)],
    ))  # fmt: skip
    finding.claim(_("Shortly after, the page did not call the queue stalled"),
                  stalled not in shortly.status)  # fmt: skip
    finding.claim(_("After the threshold, and not before, the page said that it is"),
                  stalled in late.status and late.after_s >= stalled_after_s / 2)  # fmt: skip
    finding.claim(_("With workers again the job was done, and the page said nothing of it any"
                    " more"), state == "done" and stalled not in back.status)  # fmt: skip
    finding.claim(_("The page of the job said something else while it waited than when it was"
                    " done"), shortly.job != back.job)  # fmt: skip
    finding.figures = {"stalled_after_s": stalled_after_s, "said": [one._asdict() for one in said]}
    return finding
