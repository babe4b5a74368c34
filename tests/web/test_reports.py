"""`/v1/reports/NAME` serves the finished reports, to operators, and nothing else of the disk."""

import os
from pathlib import Path

import pytest

from tests.web.house import House, problem_of

NAME = "daily-report-2026-11-30-UTC"


@pytest.fixture
def folder(house: House) -> Path:
    folder = Path(house.db.path).parent / "reports"
    folder.mkdir()
    (folder / f"{NAME}.html").write_text("<!doctype html><p>fine")
    (folder / f"{NAME}.csv").write_text("a,b\r\n")
    (folder / f".{NAME}.html.unfinished").write_text("half")
    return folder


@pytest.mark.parametrize(
    ("name", "type", "body"),
    [
        (f"{NAME}.html", "text/html; charset=utf-8", b"<!doctype html><p>fine"),
        (f"{NAME}.csv", "text/csv; charset=utf-8", b"a,b\r\n"),
    ],
)
async def test_an_operator_gets_a_report(
    house: House, folder: Path, name: str, type: str, body: bytes
) -> None:
    answer = await house.operator(f"/v1/reports/{name}")
    assert (answer.status, answer.headers["Content-Type"], answer.body) == (200, type, body)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


async def test_nobody_else_gets_one(house: House, folder: Path) -> None:
    answer = await house.ask("GET", f"/v1/reports/{NAME}.html")
    assert problem_of(answer)["status"] == 401
    await house.register("esp32-1")
    answer = await house.signed("esp32-1", b"", "GET", f"/v1/reports/{NAME}.html")
    assert problem_of(answer)["status"] == 403


@pytest.mark.parametrize(
    "name",
    [
        "none.html", "..", ".", "%2e%2e", "../operator.token", "..%2foperator.token",
        "%2e%2e%2foperator.token", "..%5coperator.token", "%2fetc%2fpasswd", "a.html%00.csv",
        f".{NAME}.html.unfinished", f"{NAME}.html%0a", "folder.html", "link.html", "pipe.csv",
        "x" * 300 + ".html", "",
    ],
)  # fmt: skip
async def test_nothing_else_of_the_disk_is_served(house: House, folder: Path, name: str) -> None:
    (folder / "folder.html").mkdir()
    (folder / "link.html").symlink_to(folder.parent / "operator.token")
    os.mkfifo(folder / "pipe.csv")
    answer = await house.operator(f"/v1/reports/{name}")
    assert problem_of(answer)["status"] == 404
    assert house.keys.operator_token not in answer.text
