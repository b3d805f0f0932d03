"""The documentation site in a browser: every page and link, on desk and phone, light and dark."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

from browsing import is_too_wide, serious_faults, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[1]
KINDS = (
    "index.html",
    "tutorial/index.html",
    "how-to/read-a-verdict.html",
    "how-to/welfare.html",
    "reference/commands.html",
    "reference/choices.html",
    "reference/log-formats.html",
    "reference/python/weights.html",
    "explanation/ranking-game.html",
    "explanation/coverage.html",
)


class Quiet(SimpleHTTPRequestHandler):
    """Files of a folder, without a log."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Links(HTMLParser):
    """Where a page leads, and the names of its places."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep addresses and names."""
        given = dict(attrs)
        self.targets += [value for name in ("href", "src") if (value := given.get(name))]
        self.places |= {value for name in ("id", "name") if (value := given.get(name))}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as it is published."""
    out = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where it is served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def pages(site: Path) -> dict[str, Links]:
    """What each page links to, by its address within the site."""
    read = {}
    for path in sorted(site.rglob("*.html")):
        read[path.relative_to(site).as_posix()] = Links()
        read[path.relative_to(site).as_posix()].feed(path.read_text(encoding="utf-8"))
    return read


def test_no_link_within_the_site_is_broken(site: Path) -> None:
    read = pages(site)
    assert len(read) > 30
    broken = []
    for name, links in read.items():
        for target in links.targets:
            # 404.html is served at any address: its links start at the root.
            whole, place = urldefrag(urljoin(f"site://here/{name}", target))
            parts = urlsplit(whole)
            if parts.scheme != "site":
                continue
            to = unquote(parts.path).lstrip("/") or "index.html"
            to = f"{to}index.html" if to.endswith("/") else to
            lost = place and to in read and unquote(place) not in read[to].places
            if lost or not (site / to).is_file():
                broken.append(f"{name} -> {target}")
    assert broken == []


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for path in [*site.rglob("*.css"), *site.rglob("*.svg")]:
        text = path.read_text(encoding="utf-8")
        assert "url(http" not in text, path.name
        assert "@import" not in text, path.name


def test_every_page_opens_without_a_fault(browser: Browser, site: Path, address: str) -> None:
    names = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    with visit(browser, address) as page:
        for name in names:
            answer = page.goto(address + name)
            assert answer is not None
            assert answer.ok, name
            assert page.locator("article h1").count() == 1, name
            assert page.locator("article").inner_text().strip(), name
            shown = page.locator("article img").evaluate_all("all => all.filter(one => !one.naturalWidth).length")
            assert shown == 0, f"{name}: a picture is missing"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", ["desk", "phone"])
def test_a_page_shuts_nobody_out(browser: Browser, address: str, kind: str, width: str) -> None:
    scheme = {"desk": "light", "phone": "dark"}[width]
    with visit(browser, address + kind, width=width, scheme=scheme) as page:
        assert (
            page.locator("body").get_attribute("data-md-color-scheme") == {"light": "default", "dark": "slate"}[scheme]
        )
        assert not is_too_wide(page)
        assert serious_faults(page) == []


def test_search_finds_a_word(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.locator(".md-search__input").fill("equilibrium")
        first = page.locator(".md-search-result__link").first
        first.wait_for()
        target = first.get_attribute("href")
        assert target is not None
        first.click()
        page.wait_for_url(f"**/{Path(urlsplit(target).path).name}*")
        assert "equilibrium" in page.locator("article").inner_text().lower()


def test_the_reader_may_turn_the_colours(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        body = page.locator("body[data-md-color-scheme]")
        assert body.get_attribute("data-md-color-scheme") == "default"
        page.locator("label[for=__palette_1]").click()
        page.locator("body[data-md-color-scheme=slate]").wait_for()
