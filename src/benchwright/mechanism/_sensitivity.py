"""Numbers behind the derivatives of v*, in the factor form of ``_weights``.

With u = w - v*, dv* = pinv(H) (dM u + M dw - d(r Sigma) v*): H keeps its range when w moves, or when r, a column of A
or a positive d_i is scaled. All but the item's own noise are pinv(H) A times n numbers, so that one (m, n) array gives
them, Z = pinv(H) A half. With P, Z and N of ``_weights``, D = r diag(d), G = B_P' D^-1 B_P, W = N (I + N'GN)^-1 N',
c = [I_n; 0] and L L'= pinv(B_Z'B_Z):

    pinv(H) B c   on P  D^-1 B_P W c,   on Z  B_Z L L' (c - W c - G W c)
    own noise     D_i pinv(H)_ii = 1 - b_i'W b_i / D_i on P,   0 on Z, where log d_i cannot move
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from benchwright._check import FloatArray
from benchwright.mechanism import _weights as kernel
from benchwright.mechanism._constrained import scaled_solve
from benchwright.mechanism._weights import RANK_TOLERANCE, Factors


@dataclass(frozen=True, slots=True, eq=False)
class Responses:
    """``moved`` (m, n) is pinv(H) A half; ``own`` (m,) is D_i pinv(H)_ii, ``total`` (m,) D_i (pinv(H) signs)_i."""

    moved: FloatArray
    own: FloatArray
    total: FloatArray


def responses(x: Factors, r: float, signs: FloatArray) -> Responses:
    """What pinv(H) makes of A half, of each item's own noise, and of its sum against ``signs`` (m,)."""
    dual = kernel.solve_dual(x, r, RANK_TOLERANCE, kernel.accumulate(x, RANK_TOLERANCE * float(x.d.max())))
    root, null, quiet, n = dual.root, dual.null, dual.quiet, x.A.shape[1]
    gram = root.T @ dual.moments.precision @ root / r if r > 0 else np.zeros_like(root)
    within = null @ scaled_solve(np.eye(null.shape[1]) + null.T @ gram @ null, null.T)
    c = np.eye(root.shape[0])[:, :n]
    q = within @ c
    basis = x.rows(quiet) @ (root @ dual.lift)
    kept = dual.lift @ (basis.T @ signs[quiet])
    moved, own, total = np.zeros((x.w.size, n)), np.zeros(x.w.size), np.zeros(x.w.size)
    pulled = np.zeros(root.shape[0])
    for block in x.blocks():
        rows, D, loud = x.rows(block) @ root, r * x.d[block], x.d[block] > dual.floor
        scaled = np.divide(rows, D[:, None], out=np.zeros_like(rows), where=loud[:, None])
        moved[block] = scaled @ q
        own[block] = np.where(loud, 1 - np.einsum("ij,ij->i", scaled @ within, rows), 0.0)
        pulled += signs[block] @ scaled
    moved[quiet] = basis @ (dual.lift.T @ (c - q - gram @ q))
    spread = within @ (gram @ kept - pulled) - kept
    for block in x.blocks():
        total[block] = np.where(x.d[block] > dual.floor, signs[block] + x.rows(block) @ (root @ spread), 0.0)
    return Responses(moved, own, total)


def residual(x: Factors, r: float, moved: FloatArray) -> float:
    """||H moved - A half|| / ||A half||, from the definition of H."""
    met, shaken = x.half.T @ (x.A.T @ moved), r * (x.F.T @ moved)
    gap2 = size2 = 0.0
    for block in x.blocks():
        axes = x.A[block] @ x.half
        gap = axes @ met + x.F[block] @ shaken + r * x.d[block][:, None] * moved[block] - axes
        gap2, size2 = gap2 + float(np.square(gap).sum()), size2 + float(np.square(axes).sum())
    return sqrt(gap2 / size2) if size2 > 0 else 0.0
