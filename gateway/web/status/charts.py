"""`/charts/{sensor}/{span}.svg`: a resource of its own, so that the pages allow no script in it."""

import asyncio
import base64
import hashlib
import re
from collections.abc import Callable

from aiohttp import web

from gateway.errors import Rejected
from gateway.handlers.report import charts
from gateway.store import device_pages
from gateway.store.database import Database
from gateway.store.device_pages import Sensor
from gateway.web.status import present
from gateway.web.status.series import SPANS, Point, Span

_MOST_DIGITS = 18
_MOST_TITLE = 100
_NONE = "'none'"
_STYLE = re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL)
_EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" width="760" height="40"/>'
# A chart in the page follows the reader's theme, as the page does.
_CSS = (
    ".axis .guide.line { stroke: #d3dad6 !important }"
    ".series .line { stroke-width: 1.5px !important }"
    ".serie-1 .line { stroke-width: 2.5px !important }"
    "@media (prefers-color-scheme: dark) {"
    ".title, .axis text, .axis text.major { fill: #c3ccc7 !important }"
    ".axis .line, .axis .major.line { stroke: #8b9690 !important }"
    ".axis .guide.line { stroke: #4a544f !important }"
    ".color-0, .color-2 { stroke: #4d6b84 !important; fill: #4d6b84 !important }"
    ".color-1, .color-3 { stroke: #7cc0f2 !important; fill: #7cc0f2 !important }"
    "}"
)


class Charts:
    """Draws what the aggregates say."""

    def __init__(self, db: Database, now_ms: Callable[[], int]) -> None:
        self._db = db
        self._now_ms = now_ms

    async def get(self, request: web.Request) -> web.Response:
        """Answer with the chart of a sensor over a day, a week or a month."""
        span, given = SPANS.get(request.match_info["span"]), request.match_info["sensor"]
        digits = given.isascii() and given.isdecimal() and len(given) <= _MOST_DIGITS
        row = await device_pages.sensor(self._db, int(given)) if digits else None
        if span is None or row is None:
            raise Rejected(404, "there is no such chart")
        now_ms, sensor = self._now_ms(), Sensor(row["id"], row["name"])
        await device_pages.spans(self._db, [sensor], span.step_ms, *span.bounds(now_ms))
        points = span.points(sensor.spans, now_ms)
        svg = await asyncio.to_thread(_draw, _title(sensor), points, span, now_ms)
        return web.Response(text=svg, content_type="image/svg+xml", headers=_headers(svg))


def _draw(title: str, points: list[Point], span: Span, now_ms: int) -> str:
    has_number = any(mean is not None for _, mean, _ in points)
    if not (has_number and charts.can_draw(points)):
        return _EMPTY
    return charts.draw(title, points, span.labels(now_ms), _CSS)


def _title(sensor: Sensor) -> str:
    unit = f" ({sensor.unit})" if sensor.unit else ""
    return present.visible(f"{sensor.name}{unit}, UTC")[
        :_MOST_TITLE
    ]  # XML has no control characters


def _headers(svg: str) -> dict[str, str]:
    # The one style that it brings is known by its hash; whoever opens the chart alone gets it too.
    styles = " ".join(f"'sha256-{_sha256(text)}'" for text in _STYLE.findall(svg))
    return {
        "Content-Security-Policy": f"default-src 'none'; style-src {styles or _NONE}; sandbox",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }


def _sha256(text: str) -> str:
    unescaped = text.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
    return base64.b64encode(hashlib.sha256(unescaped.encode()).digest()).decode()
