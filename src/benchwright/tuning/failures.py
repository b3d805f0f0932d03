"""What can go wrong in one run, each with its one clear error; the other runs go on."""

from __future__ import annotations

from typing import Any

from benchwright.errors import BenchwrightError

MISSING = "the tuning experiment needs torch, transformers, peft and lm-eval, which are not all installed"
INSTALL = "pip install 'benchwright[tune]'"


class RunError(BenchwrightError):
    """A run that cannot be carried out; ``kind`` is one of memory, loss, data, model, device, library, other."""

    def __init__(self, kind: str, message: str, *, hint: str | None = None) -> None:
        self.kind = kind
        super().__init__(message, hint=hint)

    def to_dict(self) -> dict[str, Any]:
        """Kind, message and hint."""
        return {"kind": self.kind, "message": self.message, "hint": self.hint}


def failure_of(error: BaseException, doing: str) -> RunError:
    """Return what an exception means, ``doing`` something.

    >>> failure_of(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "step 3").kind
    'memory'
    """
    if isinstance(error, RunError):
        return error
    if isinstance(error, BenchwrightError):
        return RunError("data", error.message if not str(error) else str(error).split("\nHint: ")[0], hint=error.hint)
    said = " ".join(str(error).split())[:500]
    if isinstance(error, MemoryError) or "out of memory" in said.lower() or "can't allocate memory" in said:
        return RunError(
            "memory",
            f"out of memory at {doing}",
            hint='raise `parts` (a batch in several parts), lower `eval_batch` or `max_length`, take method = "lora" or'
            ' precision = "bfloat16"',
        )
    if isinstance(error, ImportError):
        return RunError("library", f"{MISSING}: {said}", hint=INSTALL)
    return RunError("other", f"{type(error).__name__} at {doing}: {said}")
