"""Plain fits that the tests hold the slope kernels against."""

from __future__ import annotations

from math import nan, sqrt

import numpy as np
from scipy import optimize
from scipy.special import expit

from benchwright.estimating import _slopes as kernel

NAMES = kernel.Fits.__dataclass_fields__


def plain_fit(y: np.ndarray, x: np.ndarray, errors: str, cluster: np.ndarray) -> dict[str, float]:
    """One item: the line by lstsq, the variance of its slope by a sandwich of matrices."""
    known = ~np.isnan(y)
    y, x, cluster = y[known], x[known], cluster[known]
    n, doses = len(y), len(set(x.tolist()))
    out = dict.fromkeys(NAMES, nan) | {"n": n, "n_doses": doses}
    if doses < 2:
        return out
    unit = np.ptp(x)
    X = np.stack([np.ones(n), (x - x.min()) / unit], axis=1)
    beta = np.linalg.lstsq(X, y)[0]
    out |= {"slope": beta[1] / unit, "intercept": beta[0] - beta[1] * x.min() / unit}
    if n < 3:
        return out
    e, bread = y - X @ beta, np.linalg.inv(X.T @ X)
    out["residual_variance"] = e @ e / (n - 2)
    if errors == "ols":
        V, df = out["residual_variance"] * bread, n - 2
    elif errors == "hc3":
        hat = np.diag(X @ bread @ X.T)
        if (hat > 1 - 1e-9).any():
            return out
        V, df = (
            bread @ sum(np.outer(r, r) * (f / (1 - h)) ** 2 for r, f, h in zip(X, e, hat, strict=True)) @ bread,
            n - 2,
        )
    else:
        groups = sorted(set(cluster.tolist()))
        df = len(groups) - 1
        if df < 1:
            return out
        sums = [X[cluster == g].T @ e[cluster == g] for g in groups]
        V = bread @ sum(np.outer(one, one) for one in sums) @ bread * (df + 1) / df
    return out | {"standard_error": sqrt(V[1, 1]) / unit, "df": df}


def penalised(y: np.ndarray, x: np.ndarray) -> float:
    """Mean slope of the curve that maximises log L + log det I / 2, by scipy; y without gaps."""
    X = np.stack([np.ones(len(x)), (x - x.mean()) / x.std()], axis=1)

    def objective(beta: np.ndarray) -> float:
        p = expit(X @ beta)
        log_l = float(y @ np.log(p) + (1 - y) @ np.log1p(-p))
        return -log_l - 0.5 * float(np.linalg.slogdet(X.T @ ((p * (1 - p))[:, None] * X))[1])

    def gradient(beta: np.ndarray) -> np.ndarray:
        p = expit(X @ beta)
        w = p * (1 - p)
        hat = w * np.array([row @ np.linalg.solve(X.T @ (w[:, None] * X), row) for row in X])
        return X.T @ (y - p + hat * (0.5 - p))

    rough = optimize.minimize(objective, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-10})
    beta = optimize.root(gradient, rough.x, tol=1e-14).x
    assert max(np.abs(beta - rough.x).max() / 1e-3, np.abs(gradient(beta)).max() / 1e-11) < 1
    p = expit(X @ beta)
    return float(beta[1] / x.std() * (p * (1 - p)).mean())


def plain_shrunk(b: np.ndarray, se: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Empirical Bayes within one group with tau^2 from brentq on the moment equation."""

    def equation(tau2: float) -> tuple[float, float]:
        w = 1 / (se**2 + tau2)
        mean = float(sum(w * b) / sum(w))
        return float(sum(w * (b - mean) ** 2)) - (len(b) - 1), mean

    high = 1.0
    while equation(high)[0] > 0:
        high *= 2
    tau2 = optimize.brentq(lambda t: equation(t)[0], 0, high, xtol=1e-18, rtol=1e-14) if equation(0)[0] > 0 else 0.0
    mean = equation(tau2)[1]
    share = tau2 / (tau2 + se**2)
    return mean + share * (b - mean), np.sqrt(share) * se
