"""What every template is given: the language of its reader, and how things are written in it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import aiohttp_jinja2
from aiohttp import web

from gateway import __version__, languages
from gateway.alarm_texts import text_of
from gateway.config import Config
from gateway.web import instants, session
from gateway.web.status import present, words

# Nothing but what is our own: what a board or a caller sent can not become a script.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self';"
    " img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Accept, Accept-Language, Cookie",
}


class Reader:
    """Renders templates for whoever asks."""

    def __init__(self, config: Config, now_ms: Callable[[], int]) -> None:
        self._config = config
        self._now_ms = now_ms

    def answer(
        self, request: web.Request, template: str, context: dict[str, Any], status: int = 200
    ) -> web.Response:
        """Return the page as its reader wants it."""
        return self.response(self.text(request, template, context), status)

    def text(self, request: web.Request, template: str, context: dict[str, Any]) -> str:
        """Return the page, or a part of one, in its reader's language."""
        now_ms = context.get("now_ms") or self._now_ms()
        means = self._means(request, _tongue(request), now_ms)
        return aiohttp_jinja2.render_string(template, request, means | context)

    @staticmethod
    def response(text: str, status: int = 200) -> web.Response:
        return web.Response(text=text, content_type="text/html", status=status, headers=HEADERS)

    def likeness(self, request: web.Request, has_forms: bool) -> tuple[object, ...]:
        """Return what two readers have in common to whom a template shows the same."""
        banner = session.open_banner(request, self._config)
        token = session.csrf_token(request) if has_forms else None
        return _tongue(request).language, banner, token

    def _means(self, request: web.Request, tongue: languages.Tongue, now_ms: int) -> dict[str, Any]:
        return {
            "_": tongue.gettext,
            "ngettext": tongue.ngettext,
            "say": tongue.say,
            "sentence": lambda said: ", ".join(map(tongue.say, said)),
            "meaning_of": text_of,
            "clocks": words.CLOCKS,
            "lang": tongue.language,
            "number": partial(present.number, tongue=tongue),
            "size": partial(present.size, tongue=tongue),
            "span": partial(present.span, tongue=tongue),
            "ago": partial(present.ago, now_ms=now_ms, tongue=tongue),
            "iso": instants.iso,
            "utc": instants.utc,
            "shown": present.shown,
            "visible": present.visible,
            "ranges": present.ranges,
            "in_address": present.in_address,
            "now_ms": now_ms,
            "version": __version__,
            "csrf": session.csrf_token(request),
            "is_logged_in": session.is_logged_in(request),
            "banner": session.open_banner(request, self._config),
        }


def _tongue(request: web.Request) -> languages.Tongue:
    return languages.tongue(languages.wanted(request.headers.get("Accept-Language", "")))
