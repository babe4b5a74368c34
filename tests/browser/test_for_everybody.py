"""The pages for everybody: any width, either theme, either language, with a screen reader."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.conftest import Site

PAGES = ("/status", "/status/devices/shed?span=week", "/status/jobs", "/status/jobs/1",
         "/status/alarms/1", "/status/ask")  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("locale", ["en-GB", "pt-PT"])
def test_no_page_shuts_anybody_out(
    site: Site, visit: Callable[..., Page], locale: str, theme: str
) -> None:
    page = visit(site.address + "/status", locale=locale, color_scheme=theme)
    for target in PAGES:
        page.goto(site.address + target)
        assert page.locator("html").get_attribute("lang") == locale[:2]
        for details in page.locator("summary").all():
            details.click()
        found = Axe().run(page).response["violations"]
        grave = [one for one in found if one["impact"] in ("serious", "critical")]
        assert not grave, [(one["id"], one["nodes"][0]["html"]) for one in grave]


@pytest.mark.parametrize("width", [360, 800, 1280, 1920])
def test_no_page_is_wider_than_its_window(
    site: Site, visit: Callable[..., Page], width: int
) -> None:
    page = visit(site.address, locale="pt-PT", viewport={"width": width, "height": 800})
    for target in PAGES:
        page.goto(site.address + target)
        for details in page.locator("summary").all():
            details.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, target
