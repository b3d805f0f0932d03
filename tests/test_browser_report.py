"""The report in a browser: every kind of page on desk and phone, light and dark, and all that can be clicked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchwright.game_answers.inputs import answer_file
from benchwright.pipeline import audit
from benchwright.report.build import write_game_report, write_report
from benchwright.report.contents import AuditReport
from browsing import OUTSIDE, SCHEMES, WIDTHS, await_charts, await_count, is_too_wide, open_all, serious_faults, visit
from game_reports import GAMES, example, hostile, protocols, variants
from hostile_tables import HOSTILE, write_hostile
from panel_reports import FEW, eight_models

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]
CHARTS = {  # kind of report -> how many charts it has at least
    "tables": 20,
    "panel": 9,
    "game": 9,
    "game-file": 4,
    "protocols": 1,
    "variants": 1,
    "hostile-tables": 12,
    "hostile-game": 3,
}
SEEN = """id => {
  const place = document.getElementById(id).getBoundingClientRect();
  return place.top < window.innerHeight && place.bottom > 0;
}"""
Address = Callable[[str], str]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Address:
    """Where a kind of report is; each is written once."""
    root = tmp_path_factory.mktemp("reports")
    written: dict[str, Path] = {}

    def tables() -> AuditReport:
        olmes: AuditReport = request.getfixturevalue("olmes")
        return olmes

    audits = {
        "tables": tables,
        "panel": lambda: eight_models(root / "logs"),
        "hostile-tables": lambda: audit(write_hostile(root / "hostile"), config=FEW),
    }
    games = {
        "game": lambda: answer_file(GAMES / "curves.toml", replicates=40, race=True),
        "game-file": lambda: example("g1", race=True),
        "protocols": protocols,
        "variants": variants,
        "hostile-game": lambda: hostile(race=False),
    }

    def at(kind: str) -> str:
        if kind not in written:
            out = root / kind
            if kind in audits:
                written[kind] = write_report(audits[kind](), out, figures=False)
            else:
                written[kind] = write_game_report(games[kind](), out, figures=False)
        return (written[kind] / "report.html").as_uri()

    return at


@pytest.mark.parametrize("kind", CHARTS)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_whole(browser: Browser, address: Address, kind: str, width: str) -> None:
    # Layout hangs on the width and colours on the scheme: axe sees each of them once.
    scheme = {"desk": "light", "phone": "dark"}[width]
    with visit(browser, address(kind), width=width, scheme=scheme) as page:
        assert await_charts(page) >= CHARTS[kind]
        assert "could not be drawn" not in page.locator("main").inner_text()
        assert page.evaluate(OUTSIDE) == []
        open_all(page)
        assert not is_too_wide(page)
        assert serious_faults(page) == []


@pytest.mark.parametrize("kind", ["tables", "game"])
def test_the_page_follows_the_colours_of_the_reader(browser: Browser, address: Address, kind: str) -> None:
    with visit(browser, address(kind)) as page:
        await_charts(page)
        seen = {}
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            back, ink = (lightness(page, name) for name in ("background-color", "color"))
            seen[scheme] = (back > ink, page.locator(".chart svg").first.evaluate("e => getComputedStyle(e).filter"))
    assert seen["light"] == (True, "none")
    assert seen["dark"][0] is False
    assert "invert" in seen["dark"][1]


def lightness(page: Page, name: str) -> int:
    colour = page.locator("body").evaluate(f"e => getComputedStyle(e).getPropertyValue('{name}')")
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3])


@pytest.mark.parametrize("kind", ["panel", "game"])
def test_links_lead_to_their_sections_and_tables_unfold(browser: Browser, address: Address, kind: str) -> None:
    with visit(browser, address(kind)) as page:
        await_charts(page)
        links = page.locator("nav a")
        assert links.count() >= 4
        for place in range(links.count()):
            links.nth(place).click()
            target = page.url.partition("#")[2]
            assert links.nth(place).get_attribute("href") == f"#{target}"
            assert page.evaluate(SEEN, target)
        folded = page.locator("details")
        assert folded.count() >= 3
        for place in range(folded.count()):
            one = folded.nth(place)
            assert not one.locator("table").is_visible()
            one.locator("summary").press("Enter")
            assert one.locator("table").is_visible()
            assert one.locator("tbody tr").count() > 0
            one.locator("summary").click()
            assert not one.locator("table").is_visible()


def test_a_wide_table_scrolls_by_keyboard_on_a_phone(browser: Browser, address: Address) -> None:
    with visit(browser, address("tables"), width="phone") as page:
        table = page.locator("#assumptions .scroll")
        assert table.evaluate("e => e.scrollWidth > e.clientWidth")
        table.focus()
        table.evaluate(
            "e => { window.moved = new Promise(done => e.addEventListener('scroll', () => done(e.scrollLeft))); }"
        )
        page.keyboard.press("ArrowRight")
        assert page.evaluate("() => window.moved") > 0


def test_a_name_in_the_legend_singles_it_out(browser: Browser, address: Address) -> None:
    with visit(browser, address("tables")) as page:
        await_charts(page)
        figure = page.locator("#cost-quantiles")
        axis = figure.locator(".role-legend-symbol path").first.get_attribute("fill")
        assert axis is not None
        before = shown(figure)
        assert set(before.values()) == {"0.85"}
        figure.locator(".role-legend-label text").first.click()
        figure.locator("path[opacity='0.05']").first.wait_for(state="attached")
        after = shown(figure)
        assert {colour for colour, opacity in after.items() if opacity == "0.85"} == {axis}
        figure.locator(".role-legend-label text").first.click(modifiers=["Shift"])
        await_count(figure.locator("path[opacity='0.05']"), 0)
        assert shown(figure) == before


def shown(figure: Locator) -> dict[str, str]:
    """Opacity of a chart's dots by their colour."""
    dots = figure.locator(".mark-symbol path[aria-roledescription='circle']")
    pairs = dots.evaluate_all("all => all.map(dot => [dot.getAttribute('fill'), dot.getAttribute('opacity')])")
    return dict(pairs)


def test_the_threshold_of_the_activity_map_recolours_it(browser: Browser, address: Address) -> None:
    with visit(browser, address("tables")) as page:
        await_charts(page)
        figure = page.locator("figure").filter(has=page.locator("input[type=range]")).first
        slider = figure.locator("input[type=range]")
        before = colours(figure)
        assert len(before) > 1
        slider.focus()
        slider.press("Home")
        figure.get_by_text(re.compile(r"^\s*1\s*$")).first.wait_for()
        lowest = colours(figure)
        slider.press("End")
        figure.locator("path[aria-roledescription='circle'][fill='#b2182b']").first.wait_for(state="attached")
        highest = colours(figure)
    assert before != lowest != highest
    # The threshold includes its value: at 1 all activities are wanted both ways, at 5 few are wanted at all.
    assert set(lowest) == {"#009e73"}
    assert highest["#b2182b"] > before["#b2182b"]
    assert before.total() == lowest.total() == highest.total()


def colours(figure: Locator) -> Counter[str]:
    bubbles = figure.locator(".mark-symbol path[aria-roledescription='circle']")
    return Counter(bubbles.evaluate_all("all => all.map(one => one.getAttribute('fill'))"))


def test_a_mark_tells_its_figures(browser: Browser, address: Address) -> None:
    with visit(browser, address("panel")) as page:
        await_charts(page)
        figure = page.locator("#model-ranks")
        figure.scroll_into_view_if_needed()
        figure.locator(".mark-symbol path").first.hover(force=True)
        tip = page.locator("#vg-tooltip-element")
        tip.wait_for(state="visible")
        told = tip.inner_text()
    assert re.fullmatch(r"label\s+(tuned|model-\d) \[\w+\]\s+rank\s+\d\s+from\s+\d\s+to\s+\d", told)


def told_at(page: Page, dot: Locator) -> str:
    """What the tooltip says at a dot, also at one that another mark lies over."""
    tip = page.locator("#vg-tooltip-element")
    for event in ("pointerover", "pointermove", "mousemove"):
        dot.dispatch_event(event)
    tip.wait_for(state="visible")
    return tip.inner_text()


def test_hostile_names_stay_text_in_tooltips_and_tables(browser: Browser, address: Address) -> None:
    with visit(browser, address("hostile-tables")) as page:
        await_charts(page)
        open_all(page)
        for name in HOSTILE[:2]:
            assert page.get_by_text(name, exact=True).count() > 0
        assert page.locator("main img, main iframe, main object, main a[href]").count() == 0
        assert page.locator("script").count() == page.locator("figure script").count() + 2
        dots = page.locator("#welfare-scatter .mark-symbol path")
        dots.first.scroll_into_view_if_needed()
        told = (told_at(page, dots.nth(place)) for place in range(dots.count()))
        assert any("<script>alert(1)</script>" in text or "<img src=x" in text for text in told)
        assert page.locator("#vg-tooltip-element img, #vg-tooltip-element script").count() == 0


def test_print_is_light_and_shows_all_tables(browser: Browser, address: Address) -> None:
    with visit(browser, address("panel"), scheme="dark") as page:
        await_charts(page)
        paper = page.pdf(format="A4")
        assert paper.startswith(b"%PDF")
        assert page.locator("details:not([open])").count() == 0
        page.emulate_media(media="print", color_scheme="dark")
        assert lightness(page, "background-color") == 3 * 255
        assert page.locator(".chart svg").first.evaluate("e => getComputedStyle(e).filter") == "none"
        assert not page.locator("nav").is_visible()


def test_without_scripts_the_page_names_the_pictures(browser: Browser, address: Address) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address("panel"))
    names = page.locator("figure").evaluate_all("all => all.map(one => one.id)")
    texts = page.locator("noscript").all_inner_texts()
    assert texts == [f"This chart needs JavaScript; figures/{name}.svg shows it without." for name in names]
    assert page.locator("#assumptions table").is_visible()
    context.close()
