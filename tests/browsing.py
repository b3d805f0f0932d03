"""A page in a real browser, and what the tests ask of every page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

WIDTHS = {"desk": (1280, 900), "phone": (390, 844)}
SCHEMES = ("light", "dark")
LOCAL = {"file", "data", "blob", "about"}
HOSTS = {"127.0.0.1"}
PATIENCE = 60_000  # milliseconds: on a busy machine a page of many charts takes long
# axe looks into each mark of a chart; what it could find there is the same for every mark.
MARKS = ".chart svg"
OUTSIDE = """() => Array.from(document.querySelectorAll(".chart")).flatMap(chart => {
  const frame = chart.querySelector("svg").getBoundingClientRect();
  const inside = part => {
    const place = part.getBoundingClientRect();
    return place.width === 0 || place.left > frame.left - 2 && place.right < frame.right + 2
      && place.top > frame.top - 2 && place.bottom < frame.bottom + 2;
  };
  const parts = chart.querySelectorAll(".role-legend, .role-axis-title, .role-axis-label text");
  return Array.from(parts).filter(part => !inside(part)).map(part => `${chart.parentNode.id}: ${part.textContent}`);
})"""


def chromium() -> Path | None:
    """Return the Chromium to drive: $CHROMIUM, or one on the PATH."""
    named = os.environ.get("CHROMIUM")
    names = [named] if named else ["chromium", "chromium-browser", "google-chrome"]
    found = [path for name in names if (path := shutil.which(name))]
    return Path(found[0]) if found else None


@contextmanager
def visit(
    browser: Browser,
    address: str,
    *,
    width: str = "desk",
    scheme: str = "light",
    known: Callable[[str], bool] | None = None,
) -> Iterator[Page]:
    """Open a page; at the end nothing may have failed in it, asked the network or opened a dialogue.

    ``known`` tells messages of the console that are no fault of ours.
    """
    faults: list[str] = []
    across, down = WIDTHS[width]
    context = browser.new_context(
        viewport={"width": across, "height": down},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    context.on(
        "console", lambda said: faults.append(f"console {said.type}: {said.text} {said.location.get('url', '')}")
    )
    context.on("weberror", lambda error: faults.append(f"page error: {error.error}"))
    context.on("request", lambda request: None if is_local(request.url) else faults.append(f"asked {request.url}"))
    context.on("dialog", lambda dialog: (faults.append(f"dialogue: {dialog.message}"), dialog.dismiss()))
    try:
        page.goto(address)
        yield page
    finally:
        context.close()
    assert [fault for fault in faults if known is None or not known(fault)] == []


def is_local(url: str) -> bool:
    """Whether a request stays on this machine."""
    parts = urlsplit(url)
    return parts.scheme in LOCAL or parts.hostname in HOSTS


def serious_faults(page: Page) -> list[str]:
    """Return what axe calls serious or critical, each with its first element."""
    from axe_playwright_python.sync_playwright import Axe

    asked = {"context": {"exclude": [[MARKS]]}, "options": {"resultTypes": ["violations"]}}
    found: dict[str, Any] = Axe().run(page, **asked).response
    faults = [fault for fault in found["violations"] if fault["impact"] in ("serious", "critical")]
    return [
        f"{fault['id']}: {node['html'][:200]} {node['failureSummary']}" for fault in faults for node in fault["nodes"]
    ]


def await_charts(page: Page) -> int:
    """Wait until every chart of a report is drawn and return how many there are."""
    await_count(page.locator(".chart:not(.drawn, .failed)"), 0)
    return page.locator(".chart.drawn svg.marks").count()


def await_count(found: Locator, count: int) -> None:
    """Wait until so many elements are there."""
    from playwright.sync_api import expect

    # The report's policy forbids eval, by which playwright would watch an expression.
    expect(found).to_have_count(count)


def open_all(page: Page) -> None:
    """Open every folded table."""
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")


def is_too_wide(page: Page) -> bool:
    """Whether the page scrolls sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))
