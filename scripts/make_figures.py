"""Draw the two figures of the explanation that are no charts of the program: ``python scripts/make_figures.py``.

Both show the example of their page, with its numbers worked out here; a test holds the files against what this draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import benchwright as bw
from benchwright._check import FloatArray

ROOT = Path(__file__).resolve().parents[1]
IMG = ROOT / "docs" / "img"
INK, BLUE, RED, GREY, PALE = "#1a237e", "#3f51b5", "#b3261e", "#5f6786", "#e8eaf6"
HEAD = '<marker id="{0}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
ARROW = HEAD + '<path d="M0 0 8 4 0 8z" fill="{1}"/></marker>'


def drawing(width: int, height: int, label: str, parts: list[str]) -> str:
    """One SVG on a white page, with arrow heads ``blue``, ``red`` and ``grey``."""
    heads = "".join(ARROW.format(*pair) for pair in (("blue", BLUE), ("red", RED), ("grey", GREY)))
    size = f'viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif" font-size="13"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">'
    return "\n".join([opening, f"<defs>{heads}</defs>", *parts, "</svg>", ""])


def line(a: tuple[float, float], b: tuple[float, float], colour: str, *, width: float = 2, more: str = "") -> str:
    """A straight line from ``a`` to ``b``, in pixels."""
    ends = f'x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width:g}" {more}/>'


def text(at: tuple[float, float], words: str, colour: str, *, more: str = "") -> str:
    """Words at a place, in pixels."""
    return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" fill="{colour}" {more}>{words}</text>'


def geometry() -> str:
    """What weights call forth in the aggregation game's example, noise left out."""
    slopes, welfare, curvature = np.array([[4e-6, 0.0], [1e-6, 2e-6], [0.0, 3e-6]]), np.array([1.0, 0.2, -0.5]), 1e-10
    effort = slopes / curvature / 1e3  # thousands of USD that a weight of 1 on each item calls forth
    wanted, plain = welfare @ effort, effort.sum(axis=0)
    foot = plain * (plain @ wanted) / (plain @ plain)
    kept = float((plain @ wanted) ** 2 / (plain @ plain) / (wanted @ wanted))
    model = bw.ItemAggregation(slopes, welfare, risk_aversion=0.0, curvature=curvature)
    board = bw.optimal_weights(model, bw.Constraints())
    if abs(bw.evaluate_scheme(model, [1, 1, 1]).efficiency - kept) > 1e-12:
        raise AssertionError("the figure and the program differ")
    there = board.weights @ effort

    def px(point: Sequence[float] | FloatArray) -> tuple[float, float]:
        return 70 + 8.6 * float(point[0]), 322 - 8.6 * float(point[1])

    zero, quadrant = px((0, 0)), px((52, 33))
    wide, tall = quadrant[0] - zero[0], zero[1] - quadrant[1]
    parts = [f'<rect x="{zero[0]:g}" y="{quadrant[1]:.1f}" width="{wide:.1f}" height="{tall:.1f}" fill="{PALE}"/>']
    parts += [text((px((52, 0))[0] - 6, quadrant[1] + 18), "weights of 0 and more", GREY, more='text-anchor="end"')]
    parts += [line(px((-4, 0)), px((56, 0)), GREY, width=1, more='marker-end="url(#grey)"')]
    parts += [line(px((0, -14)), px((0, 36)), GREY, width=1, more='marker-end="url(#grey)"')]
    parts += [text((px((56, 0))[0] + 2, px((0, -3.4))[1]), "axis 1", GREY, more='text-anchor="end"')]
    parts += [text((zero[0] - 52, px((0, 34))[1]), "axis 2", GREY)]
    for value in (20, 40):
        parts += [text((px((value, 0))[0], zero[1] + 16), str(value), GREY, more='font-size="11" text-anchor="middle"')]
    for value in (10, 20, 30):
        parts += [text((zero[0] - 6, px((0, value))[1] + 4), str(value), GREY, more='font-size="11" text-anchor="end"')]
    parts += [line(zero, px((33, 33)), BLUE, width=1, more='stroke-dasharray="2 4"')]
    for name, item, shift in zip("abc", effort, ((-230, -8), (6, 0), (8, 6)), strict=True):
        tip = px(item)
        parts += [line(zero, tip, BLUE, more='marker-end="url(#blue)"')]
        parts += [text((tip[0] + shift[0], tip[1] + shift[1]), f"item {name}", INK)]
    parts += [line(zero, px(wanted), RED, width=2.5, more='marker-end="url(#red)"')]
    parts += [text((px(wanted)[0] + 8, px(wanted)[1] + 8), "wanted (first best)", RED)]
    for point in (foot, there):
        parts += [line(px(point), px(wanted), RED, width=1.2, more='stroke-dasharray="5 3"')]
        parts += [f'<circle cx="{px(point)[0]:.1f}" cy="{px(point)[1]:.1f}" r="4" fill="{INK}"/>']
    parts += [text((px(foot)[0] + 10, px(foot)[1] - 4), f"plain average keeps {kept:.1%}", INK)]
    parts += [text((px(there)[0] + 8, px(there)[1] - 10), f"best board keeps {board.efficiency:.1%}", INK)]
    parts += [text((20, 472), "effort that weights call forth, thousands of USD on each axis", GREY)]
    words = "Effort called forth by items, by the plain average and by the best board, and the effort that is wanted"
    return drawing(620, 486, words, parts)


def threshold() -> str:
    """The cost of just overtaking over common tuning, in the examples g5 and g4, against their reward gap."""
    found = {name: bw.answer_file(ROOT / "examples" / "games" / f"{name}.toml") for name in ("g5", "g4")}
    gap, top = 2.0, 3.0
    star = found["g5"].threshold.delta

    def px(level: float, cost: float) -> tuple[float, float]:
        return 70 + 240 * level, 320 - 90 * cost

    (left, low), (right, high) = px(0, 0), px(2, top)
    middle = px(0, gap)[1]
    parts = [f'<rect x="{left:g}" y="{high:g}" width="{right - left:g}" height="{middle - high:g}" fill="{PALE}"/>']
    parts += [line((left, low), (right + 16, low), GREY, width=1, more='marker-end="url(#grey)"')]
    parts += [line((left, low), (left, high - 16), GREY, width=1, more='marker-end="url(#grey)"')]
    parts += [text((right + 16, low + 34), "common tuning Delta", GREY, more='text-anchor="end"')]
    parts += [text((left - 56, high - 22), "cost of overtaking, in units of reward", GREY)]
    for level in (0.0, 1.0, 2.0):
        parts += [text((px(level, 0)[0], low + 16), f"{level:g}", GREY, more='font-size="11" text-anchor="middle"')]
    for cost in (1.0, 2.0, 3.0):
        parts += [text((left - 8, px(0, cost)[1] + 4), f"{cost:g}", GREY, more='font-size="11" text-anchor="end"')]
    parts += [line((left, middle), (right, middle), INK, width=1.5)]
    parts += [text((right + 6, middle + 4), "reward gap", INK)]
    parts += [text((left + 10, high + 20), "no jump pays: all at free effort, a pure equilibrium", INK)]
    parts += [text((right - 8, low - 14), "some jump pays: no pure equilibrium", RED, more='text-anchor="end"')]
    levels = np.array([0.0, 1.0, 2.0])
    for name, words in (("g5", "1 + Delta (g5)"), ("g4", "1 (g4)")):
        game = found[name].solution.game
        costs = [bw.solve(game.at(level)).just_overtake[0].cost for level in levels]
        if not np.allclose(costs, 1 + levels if name == "g5" else 1.0):
            raise AssertionError("the figure and the program differ")
        ends = [px(float(level), float(cost)) for level, cost in zip(levels, costs, strict=True)]
        parts += [line(ends[0], ends[-1], BLUE, width=2.5)]
        parts += [text((ends[-1][0] + 6, ends[-1][1] + 4), words, BLUE)]
    parts += [line(px(star, gap), px(star, 0), INK, width=1, more='stroke-dasharray="4 3"')]
    parts += [f'<circle cx="{px(star, gap)[0]:g}" cy="{px(star, gap)[1]:g}" r="4" fill="{INK}"/>']
    parts += [text((px(star, 0)[0] + 6, px(0, 0.4)[1]), f"Delta* = {star:g}", INK)]
    words = "Cost of just overtaking over common tuning, in two games with a reward gap of 2"
    return drawing(660, 370, words, parts)


FIGURES = {"weights-geometry.svg": geometry, "overtaking-threshold.svg": threshold}


def main() -> None:
    """Write both files."""
    for name, draw in FIGURES.items():
        (IMG / name).write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
