"""The libraries of the extra ``tune``, loaded only where a run needs them."""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from benchwright.errors import UsageError
from benchwright.tuning.failures import INSTALL, MISSING, RunError

NAMES = ("torch", "transformers", "peft", "lm-eval", "tokenizers", "numpy")


def check_installed(*modules: str) -> None:
    """Raise where one of these libraries is not installed; loads none.

    Raises
    ------
    UsageError
        With what to type.
    """
    if missing := [name for name in modules if find_spec(name) is None]:
        raise UsageError(f"{MISSING}: {', '.join(missing)}", hint=INSTALL)


def load(name: str) -> Any:
    """Return a library, quietly."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(name)
    except ImportError as error:
        raise RunError("library", f"{MISSING}: {error}", hint=INSTALL) from None


def versions() -> dict[str, str]:
    """Return the versions of the libraries that are installed."""
    found = {}
    for name in NAMES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
