"""The arms race move by move: each developer in turn makes its best reply to what the others do.

A best reply is free effort, or an effort just above what overtakes a rival. There is no least such effort, so a mover
goes ``step`` of the way from its lower limit to the effort that would cost all that overtaking gains, so that every
jump that pays is one to make. Where nobody gains, the profile is an equilibrium up to rounding; where a profile comes
back, the moves since then are a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart
from benchwright.errors import UsageError
from benchwright.ranking_game.game import RankingGame

if TYPE_CHECKING:
    import polars as pl

GAIN = 1e-9  # of the reward gap: less is no reason to move
MOVES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Move:
    """One developer's move: to what effort, score and rank (from 1), and what it gains."""

    developer: int
    effort: float
    score: float
    rank: int
    gain: float


@dataclass(frozen=True, slots=True, eq=False)
class BestReplies(Shown):
    """Moves from a profile on, and how they ended.

    ``ended`` is "rest" (nobody gains), "cycle" (the moves from ``cycle_start`` on repeat) or "cap" (stopped).
    ``profile`` (n,) is the last one.
    """

    game: RankingGame
    moves: tuple[Move, ...]
    ended: Literal["rest", "cycle", "cap"]
    cycle_start: int | None
    profile: FloatArray

    @property
    def cycle(self) -> tuple[Move, ...]:
        """The moves that repeat."""
        return () if self.cycle_start is None else self.moves[self.cycle_start :]

    def _told(self) -> Iterable[ShownPart]:
        told = {
            "rest": f"nobody gains any more after {len(self.moves)} moves",
            "cycle": f"after {self.cycle_start} moves a cycle of {len(self.cycle)}",
            "cap": f"stopped after {len(self.moves)} moves",
        }[self.ended]
        moves = self.cycle if self.cycle else self.moves
        yield Headline(f"Best replies: {told}")
        yield from (
            f"  {self.game.name(move.developer)} to effort {move.effort:.4g}, score {move.score:.4g}, "
            f"rank {move.rank}, gains {move.gain:.4g}"
            for move in moves[:MOVES_SHOWN]
        )
        if len(moves) > MOVES_SHOWN:
            yield f"  ... and {len(moves) - MOVES_SHOWN} more"

    def to_frame(self) -> pl.DataFrame:
        """One row a move: developer, effort, score, rank, gain, whether it is part of the cycle."""
        import polars as pl

        start = len(self.moves) if self.cycle_start is None else self.cycle_start
        rows = [
            (self.game.name(m.developer), m.effort, m.score, m.rank, m.gain, k >= start)
            for k, m in enumerate(self.moves)
        ]
        schema = {"developer": pl.String, "effort": pl.Float64, "score": pl.Float64, "rank": pl.Int64}
        return pl.DataFrame(rows, schema=schema | {"gain": pl.Float64, "in_cycle": pl.Boolean}, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """Moves and how they ended, in types that JSON knows."""
        return {
            "ended": self.ended,
            "cycle_start": self.cycle_start,
            "profile": json_safe(self.profile),
            "moves": self.to_frame().to_dicts(),
        }


def best_replies(
    game: RankingGame,
    *,
    start: Any = None,
    step: float = 0.1,
    max_moves: int = 1000,
    rng: np.random.Generator | None = None,
) -> BestReplies:
    """Let developers move in turn, each to its best reply.

    Parameters
    ----------
    game : RankingGame
    start : (n,) efforts, optional
        By default everybody at free effort.
    step : float in (0, 1)
        How far above the least effort that overtakes, as a part of the way to where it costs what it gains.
    max_moves : int >= 1
    rng : source of randomness, optional
        Who is next; by default the least capable, then the next, and so on round.

    Examples
    --------
    >>> from benchwright.ranking_game.forms import TranslationCurves
    >>> curves = TranslationCurves([1.0, 0.5], "exponential")
    >>> print(best_replies(RankingGame(curves, [1.0, 0.0], names=("a", "b")), step=0.5))
    Best replies: after 0 moves a cycle of 4
      b to effort 0.75, score 0.7135, rank 1, gains 0.25
      a to effort 0.625, score 0.8031, rank 1, gains 0.375
      b to effort 0, score 0.3935, rank 2, gains 0.75
      a to effort 0, score 0.6321, rank 1, gains 0.625
    """
    if not 0 < step < 1 or max_moves < 1:
        raise UsageError(f"`step` must lie in (0, 1) and `max_moves` be >= 1, got {step} and {max_moves}")
    profile = game.profile(game.costs.free if start is None else start).copy()
    least, idle = GAIN * max(float(np.ptp(game.rewards)), 1e-300), 0
    queue: list[int] = []
    moves: list[Move] = []
    seen: dict[tuple[Any, ...], int] = {}
    while len(moves) < max_moves:
        if not queue:
            queue = (game.order if rng is None else rng.permutation(game.n)).tolist()
        mover = queue.pop()
        state = (mover, *profile.tolist())
        if rng is None and idle == 0:
            if state in seen:
                return BestReplies(game, tuple(moves), "cycle", seen[state], profile)
            seen[state] = len(moves)
        reply, gain = _reply(game, profile, mover, step)
        if gain <= least:
            idle += 1
            if idle >= 2 * game.n:  # everybody was asked, whatever the order
                return BestReplies(game, tuple(moves), "rest", None, profile)
            continue
        profile[mover], idle = reply, 0
        rank = int(np.flatnonzero(game.published_order(profile) == mover)[0]) + 1
        moves.append(Move(mover, reply, float(game.scores(profile)[mover]), rank, gain))
    return BestReplies(game, tuple(moves), "cap", None, profile)


def _reply(game: RankingGame, profile: FloatArray, mover: int, step: float) -> tuple[float, float]:
    """The best of free effort and just above each rival, and its gain."""
    order = game.published_order(profile)
    others = order[order != mover]
    who = np.full(others.size, mover)
    _, needed = game.curves.overtake(who, others, profile[others], game.tune_before_test)
    now = float(game.payoffs(profile)[mover])
    worth = np.minimum(game.rewards[:-1] - now, np.ptp(game.rewards))  # of outscoring the first, second, ... of them
    limit = game.costs.budget(who, np.maximum(worth, 0.0))
    reach = needed < limit
    efforts = np.concatenate([game.costs.free[[mover]], needed[reach] + step * (limit - needed)[reach]])
    best, gain = float(profile[mover]), 0.0
    for effort in efforts:
        moved = profile.copy()
        moved[mover] = effort
        more = float(game.payoffs(moved)[mover]) - now
        if more > gain:
            best, gain = float(effort), more
    return best, gain
