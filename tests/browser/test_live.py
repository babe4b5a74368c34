"""The page in a browser, as an operator has it open: live, and honest when it is not."""

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Site

expect.set_options(timeout=20_000)
Visit = Callable[..., Page]


def sign(page: Page) -> Locator:
    return page.locator("#live")


def said(page: Page) -> Locator:
    """What the page says of the job that it shows."""
    return page.locator("[data-announce]")


def ask(page: Page, kind: str) -> None:
    page.get_by_role("link", name="Ask for work").first.click()
    page.get_by_label("Kind").select_option(kind)
    page.get_by_role("button", name="Ask for it").click()


def test_a_reading_arrives_while_one_looks(site: Site, visit: Visit) -> None:
    page = visit(site.address + "/status")
    expect(sign(page)).to_have_text("● live")
    page.evaluate("window.same = true")
    site.deliver(6, 99.25)
    expect(page.locator("[data-part=devices]")).to_contain_text("99.25 Cel")
    assert page.evaluate("window.same"), "it was not the page that was loaded"


def test_a_failed_job_is_tried_again_and_seen_done(site: Site, visit: Visit) -> None:
    page = visit(site.address + "/status")
    ask(page, "fails_once")
    expect(said(page)).to_have_text("failed")
    expect(page.locator("main")).to_contain_text("no answer from <the other side>")
    page.get_by_role("button", name="Try again").click()
    expect(said(page)).to_have_text("done")
    expect(page.locator("[data-label=Move]")).to_have_text(
        ["enqueue", "claim", "fail", "retry", "claim", "finish"]
    )


def test_a_gateway_that_is_gone_is_missed_and_found_again(
    open_site: Callable[..., Site], visit: Visit
) -> None:
    site = open_site(0)
    page = visit(site.address + "/status")
    expect(sign(page)).to_have_text("● live")
    site.cut()
    expect(sign(page)).to_contain_text("not live since")
    site.bring_back()
    site.deliver(1, 55.5)
    expect(sign(page)).to_have_text("● live")
    expect(page.locator("[data-part=devices]")).to_contain_text("55.5 Cel")


def test_with_no_workers_nothing_is_ever_done_and_the_queue_is_stalled(
    open_site: Callable[..., Site], visit: Visit
) -> None:
    site = open_site(0, "--stalled-after-s", "2", "--lease-ms", "6000")
    page = visit(site.address + "/status/ask")
    ask(page, "slow")
    expect(said(page)).to_have_text("received, waiting")
    page.goto(site.address + "/status")
    expect(page.locator("[data-part=headline]")).to_contain_text("the queue is stalled")
    expect(page.locator("[data-part=jobs]")).to_contain_text("received, waiting")

    worker = site.worker()
    job = site.ask("slow", seconds=60)
    page.goto(f"{site.address}/status/jobs/{job}")
    expect(said(page)).to_have_text("running")
    worker.kill()
    expect(said(page)).to_have_text(re.compile("no sign of its worker|worker is gone"))
    expect(said(page)).to_have_text("waits to be tried again")
    expect(page.locator("[data-label=Move]")).to_contain_text(["enqueue", "claim", "rescue"])


def test_all_can_be_done_without_a_script(site: Site, visit: Visit, tmp_path: Path) -> None:
    page = visit(site.address + "/status", java_script_enabled=False)
    ask(page, "fails_once")
    while said(page).text_content() != "failed":
        page.reload()
    page.get_by_role("button", name="Try again").click()
    while said(page).text_content() != "done":
        page.reload()
    sheet = tmp_path / "old readings.csv"
    sheet.write_text("device,sensor,value,at\na,s,1,2026-11-30T00:00:00Z\n")
    page.get_by_role("link", name="Ask for work").first.click()
    page.get_by_label("File").set_input_files(sheet)
    page.get_by_role("button", name="Send the file").click()
    expect(page.locator("main")).to_contain_text("old readings.csv")
    assert page.locator("time").first.text_content().endswith("UTC")


def test_a_file_is_sent_with_its_progress(site: Site, visit: Visit, tmp_path: Path) -> None:
    page = visit(site.address + "/status/ask")
    empty, sheet = tmp_path / "empty.csv", tmp_path / "sheet.csv"
    empty.write_bytes(b"")
    sheet.write_text("device,sensor,value,at\nb,s,2,2026-11-30T00:00:00Z\n")
    page.get_by_label("File").set_input_files(empty)
    page.get_by_role("button", name="Send the file").click()
    expect(page.locator("[data-refusal]")).to_contain_text("the file is empty")
    page.get_by_label("File").set_input_files(sheet)
    page.get_by_role("button", name="Send the file").click()
    expect(page).to_have_url(re.compile("/status/jobs/[0-9]+$"))
    expect(said(page)).to_have_text("done")
    expect(page.get_by_role("link", name="See what came of it")).to_be_visible()


def test_an_alarm_is_acknowledged_with_a_note(site: Site, visit: Visit) -> None:
    page = visit(site.address + "/status")
    page.get_by_role("link", name="Acknowledge").first.click()
    page.get_by_label("Note for whoever looks next").fill("I look into it <tomorrow>")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("[data-part=alarms]")).to_contain_text("I look into it <tomorrow>")


def test_times_are_in_the_readers_zone_with_the_instant_beside(site: Site, visit: Visit) -> None:
    page = visit(site.address + "/status/jobs/1")
    time = page.locator("time[data-show=clock]").first
    expect(time).to_have_attribute("title", re.compile(r"GMT\+5:45 = \d{4}-\d\d-\d\dT.*Z$"))
    assert time.text_content() in time.get_attribute("title")


def test_what_is_open_and_focused_stays_so(site: Site, visit: Visit) -> None:
    page = visit(site.address + "/status")
    expect(sign(page)).to_have_text("● live")
    page.locator("#times summary").click()
    button = page.locator("[data-part=jobs] a[href='/status/jobs']")
    button.focus()
    job = site.ask("slow")
    expect(page.locator(f"[data-part=jobs] a[href='/status/jobs/{job}']")).to_be_visible()
    expect(page.locator("#times")).to_have_attribute("open", "")
    expect(button).to_be_focused()
