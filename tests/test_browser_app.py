"""The designer's desk in a browser: every page and lever, two readers at once, a setting that is shared, files."""

from __future__ import annotations

import csv
import io
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest

from browsing import PATIENCE, await_charts, await_count, is_too_wide, serious_faults, visit
from game_reports import GAMES
from test_audit_panel import grids, ingested, seeds

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PAGES = ("Weights", "Leaderboard", "Ranking game", "Audit", "Items", "Assumptions")
LEVERS: dict[str, tuple[str, str, object]] = {  # key -> label, page that it moves, where to
    "welfare.automation_share": ("Share of automation", "Weights", None),
    "welfare.neutral": ("Neutral point", "Weights", None),
    "lab.risk_aversion": ("Risk aversion", "Weights", "300"),
    "lab.budget": ("Budget (US dollars)", "Weights", "5000000"),
    "prices.SFT": ("Price of SFT (US dollars)", "Weights", "20"),
    "published.non_negative": ("No weight below 0", "Weights", False),
    "published.max_share": ("Largest share of one item", "Weights", "0.2"),
    "published.equal_within": ("One weight within each", "Weights", ["task"]),
    "published.at_most": ("Items with a weight, at most", "Weights", "3"),
    "game.rewards": ("Rewards of ranks", "Ranking game", "linear:9:0"),
    "game.kappa": ("Cost of a unit of effort", "Ranking game", "3"),
    "game.tune_before_test": ("Tuning before the test", "Ranking game", "2000"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the desk is started: a panel of three models on three axes, and the welfare of its items."""
    folder = tmp_path_factory.mktemp("desk")
    ingested(folder / "logs", grids(), seeds(3)).rename(folder / "panel")
    items = grids().select("task", "doc_id").unique().sort("task", "doc_id")
    rng = np.random.default_rng(6)
    (folder / "welfare").mkdir()
    values = {name: rng.uniform(2.5, 11.0, items.height) for name in ("w_auto", "w_aug")}
    items.with_columns(**values).write_csv(folder / "welfare" / "welfare.csv")
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Where the desk is served."""
    port = free_port()
    with served(folder, port) as server:
        yield f"http://127.0.0.1:{port}/"
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
    assert "Traceback" not in (folder / "log").read_text(encoding="utf-8")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def served(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Serve the desk of a folder until it is left."""
    command = [sys.executable, "-m", "benchwright.cli", "serve", "panel", "--welfare", "welfare", "--port", str(port)]
    # so much fear of noise that the weights spread over ten items
    few = ("resampling.replicates=100", "published.draws=39", "estimates.replicates=100")
    for setting in (*few, "lab.risk_aversion=1e7"):
        command += ["--set", setting]
    command += ["--game", str(GAMES / "curves.toml")]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log, cwd=folder) as server:
        try:
            answers(port, server)
            yield server
        finally:
            server.kill()


def answers(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server does."""
    for _ in range(1200):
        assert server.poll() is None, "the server ended"
        try:
            with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as asked:
                asked.request("GET", "/_stcore/health")
                if asked.getresponse().status == HTTPStatus.OK:
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError("the server does not answer")


def is_known(fault: str) -> bool:
    """Streamlit looks for its server below the page's own address first."""
    return "404" in fault and "/_stcore/" in fault


def opened(page: Page, title: str) -> None:
    """Go to a page of the desk; on a phone the pages are behind a button."""
    settled(page)
    unfold = page.get_by_test_id("stExpandSidebarButton")
    if unfold.is_visible():
        unfold.click()
    page.get_by_role("link", name=title, exact=True).click()
    page.get_by_role("heading", name=title, exact=True, level=1).wait_for()
    settled(page)


def settled(page: Page) -> None:
    """Wait until the desk has answered: until then what no longer holds is faded, and parts that load are grey."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning] h1").first.wait_for()
    await_count(page.locator("[data-stale=true], [data-testid=stSkeleton]"), 0)


def sayings(page: Page) -> Locator:
    """Figures and sentences of a page, tables and charts apart."""
    main = page.get_by_test_id("stMain")
    return main.locator("[data-testid=stMetricValue], [data-testid=stMarkdownContainer] p")


def figures(page: Page) -> Locator:
    """Figures at the head of a page."""
    return page.get_by_test_id("stMain").get_by_test_id("stMetricValue")


def told(page: Page) -> list[str]:
    """What they say."""
    settled(page)
    return sayings(page).all_text_contents()


def moved(page: Page, key: str) -> None:
    """Move a lever."""
    from playwright.sync_api import expect

    settled(page)
    label, _, to = LEVERS[key]
    side = page.get_by_test_id("stSidebar")
    for group in side.locator("details").all():
        if group.get_attribute("open") is None:
            group.locator("summary").click()
            expect(group).to_have_attribute("open", "")
    if to is None:
        side.get_by_role("slider", name=label).press("Home")
    elif to is False:
        side.get_by_text(label, exact=True).click()
    elif isinstance(to, list):
        side.get_by_role("combobox", name=label).click()
        page.get_by_role("option", name=to[0], exact=True).click()
    else:
        box = side.get_by_label(label, exact=True)
        box.fill(str(to))
        box.press("Enter")
    page.wait_for_url(lambda url: key in parse_qs(urlsplit(url).query))
    settled(page)


@pytest.mark.parametrize("width", ["desk", "phone"])
def test_every_page_opens_without_a_fault(browser: Browser, address: str, width: str) -> None:
    scheme = {"desk": "light", "phone": "dark"}[width]
    with visit(browser, address, width=width, scheme=scheme, known=is_known) as page:
        for title in PAGES:
            opened(page, title)
            assert page.get_by_test_id("stException").count() == 0
            assert page.get_by_test_id("stAlertContentError").count() == 0
            assert not is_too_wide(page), title
            assert serious_faults(page) == [], title
            if title in ("Weights", "Leaderboard", "Ranking game", "Audit"):
                page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first.wait_for()


@pytest.mark.parametrize("key", LEVERS)
def test_each_lever_moves_what_the_desk_says(browser: Browser, address: str, key: str) -> None:
    from playwright.sync_api import expect

    with visit(browser, address, known=is_known) as page:
        opened(page, LEVERS[key][1])
        before = told(page)
        moved(page, key)
        expect(sayings(page)).not_to_have_text(before)
        assert page.get_by_test_id("stAlertContentError").count() == 0
        page.get_by_role("button", name="Back to the start").click()
        page.wait_for_url(lambda url: key not in url)
        expect(sayings(page)).to_have_text(before)


def test_two_readers_have_their_own_levers_and_an_address_shares_them(browser: Browser, address: str) -> None:
    from playwright.sync_api import expect

    with visit(browser, address, known=is_known) as one, visit(browser, address, known=is_known) as other:
        opened(one, "Weights")
        opened(other, "Weights")
        start = told(other)
        moved(one, "published.at_most")
        moved(one, "welfare.neutral")
        expect(sayings(one)).not_to_have_text(start)
        moved(other, "lab.risk_aversion")
        assert "published.at_most" not in other.url
        with visit(browser, one.url, known=is_known) as third:
            opened(third, "Weights")
            expect(sayings(third)).to_have_text(told(one))
            assert parse_qs(urlsplit(third.url).query) == parse_qs(urlsplit(one.url).query)


def test_what_is_shown_can_be_taken_along(browser: Browser, address: str) -> None:
    with visit(browser, address, known=is_known) as page:
        for title in ("Weights", "Leaderboard", "Items"):
            opened(page, title)
            offers = page.get_by_test_id("stDownloadButton").get_by_role("button")
            offers.first.wait_for()
            with page.expect_download() as coming:
                offers.first.click()
            assert coming.value.suggested_filename.endswith(".csv")
            rows = list(csv.reader(io.StringIO(coming.value.path().read_text(encoding="utf-8"))))
            assert len(rows) > 1
            assert len({len(row) for row in rows}) == 1


def test_an_item_is_found_and_explained(browser: Browser, address: str) -> None:
    with visit(browser, address, known=is_known) as page:
        opened(page, "Items")
        page.get_by_label("Item id or topic contains").fill("7")
        page.get_by_label("Item id or topic contains").press("Enter")
        page.get_by_role("heading", name="/ 7").wait_for()
        page.get_by_role("heading", name="Why it weighs what it weighs").wait_for()
        page.wait_for_url("**doc_id=7")
        with visit(browser, page.url, known=is_known) as other:
            other.get_by_role("heading", name="/ 7").wait_for()
        page.get_by_label("Item id or topic contains").fill("no such item")
        page.get_by_label("Item id or topic contains").press("Enter")
        page.get_by_text("No item fits.").wait_for()


def test_settings_are_kept_and_the_report_is_built_with_them(browser: Browser, address: str, folder: Path) -> None:
    with visit(browser, address, known=is_known) as page:
        moved(page, "published.max_share")
        opened(page, "Assumptions")
        page.get_by_role("button", name="Write these settings to benchwright.toml").click()
        page.get_by_text("Wrote benchwright.toml.").wait_for()
        assert "max_share = 0.2" in (folder / "benchwright.toml").read_text(encoding="utf-8")
        page.get_by_role("button", name="Build the report").click()
        page.get_by_text("open out-desk/report.html").wait_for()
    with visit(browser, (folder / "out-desk" / "report.html").as_uri()) as report:
        assert await_charts(report) > 10
        row = report.locator("#assumptions tr").filter(has_text="published.max_share")
        assert "0.2" in row.locator("td.changed").inner_text()


def test_an_address_that_no_desk_wrote_is_said_to_be_none(browser: Browser, address: str) -> None:
    evil = "<img src=x onerror=alert(1)>"
    query = urlencode({"welfare.neutral": 99, evil: evil})
    with visit(browser, f"{address}?{query}", known=is_known) as page:
        page.get_by_role("heading", name="Weights", level=1).wait_for()
        said = " ".join(told(page))
        assert "welfare.neutral must lie in" in said
        assert evil in said
        assert page.locator("[data-testid=stMain] img[src=x]").count() == 0


def test_haste_moves_no_lever(browser: Browser, address: str) -> None:
    # Each click cuts the run before it short, often before it has come to the levers.
    with visit(browser, f"{address}?published.max_share=0.2", known=is_known) as page:
        for title in ("Items", "Audit", "Weights", "Assumptions", "Items", "Weights"):
            page.get_by_role("link", name=title, exact=True).click()
        page.get_by_role("heading", name="Weights", exact=True, level=1).wait_for()
        settled(page)
        assert parse_qs(urlsplit(page.url).query) == {"published.max_share": ["0.2"]}
        assert page.get_by_test_id("stSidebar").get_by_role("slider", name="Neutral point").input_value() == "3"


def test_a_killed_server_loses_nothing(browser: Browser, folder: Path, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    for name in ("panel", "welfare"):
        shutil.copytree(folder / name, tmp_path / name)
    port = free_port()
    kept = {"published.max_share": ["0.2"]}
    with browser.new_context() as context:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        with served(tmp_path, port) as server:
            page.goto(f"http://127.0.0.1:{port}/")
            moved(page, "published.max_share")
            before = figures(page).all_text_contents()
            opened(page, "Assumptions")
            page.get_by_role("button", name="Write these settings to benchwright.toml").click()
            page.get_by_text("Wrote benchwright.toml.").wait_for()
            page.get_by_role("button", name="Build the report").click()
            page.get_by_text("tables", exact=True).wait_for()  # a step of the report
            server.kill()
            server.wait()
        assert not (tmp_path / "out-desk").exists()
        assert "max_share = 0.2" in (tmp_path / "benchwright.toml").read_text(encoding="utf-8")
        assert parse_qs(urlsplit(page.url).query) == kept
        with served(tmp_path, port):
            page.reload()
            opened(page, "Weights")
            expect(figures(page)).to_have_text(before)
            opened(page, "Assumptions")
            page.get_by_role("button", name="Build the report").click()
            page.get_by_text("open out-desk/report.html").wait_for()
        names = {"panel", "welfare", "log", "benchwright.toml", "out-desk"}
        assert {one.name for one in tmp_path.iterdir()} == names
