"""Open a language model for tuning: from a hub or a folder, on a device, with or without adapters."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchwright.tuning.failures import RunError, failure_of
from benchwright.tuning.libraries import load
from benchwright.tuning.protocol import looks_local
from benchwright.tuning.settings import TuningSettings


@dataclass(frozen=True, slots=True, eq=False)
class OpenModel:
    """A model on its device; ``facts`` are what the record says of it."""

    model: Any
    tokenizer: Any
    device: Any
    keeps: bool
    precision: str
    facts: dict[str, Any]

    def arithmetic(self) -> Any:
        """The context that forward passes run in."""
        torch = load("torch")
        if self.precision == "bfloat16":
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return nullcontext()

    def predictions(self, batch: Any) -> tuple[Any, Any]:
        """Logits (k, vocabulary) of a batch's k predictions, as 32-bit numbers, and their targets (k,)."""
        torch = load("torch")
        put = {"device": self.device, "non_blocking": True}
        first, last = batch.window
        window = {"logits_to_keep": torch.arange(first, last + 1, device=self.device)} if self.keeps else {}
        ids = torch.from_numpy(batch.ids).to(**put)
        with self.arithmetic():
            logits = self.model(input_ids=ids, use_cache=False, **window).logits
        row, column = (torch.from_numpy(part).to(**put) for part in (batch.row, batch.column))
        return logits[row, column if self.keeps else column + first].float(), torch.from_numpy(batch.target).to(**put)

    @property
    def vocabulary(self) -> int:
        """Number of tokens that the model knows."""
        return int(self.model.get_input_embeddings().weight.shape[0])

    def tuned(self) -> dict[str, Any]:
        """The parameters that tuning moves, by name."""
        return {name: value for name, value in self.model.named_parameters() if value.requires_grad}


def open_model(path: str, revision: str | None, settings: TuningSettings, *, seed: int) -> OpenModel:
    """Open a model for tuning; its adapters are drawn from ``seed``.

    Raises
    ------
    RunError
        There is no such folder, hub or device, the files are no causal language model, or memory does not do.
    """
    torch, transformers = load("torch"), load("transformers")
    device = device_of(settings.device)
    lora = settings.method == "lora"
    kind = torch.bfloat16 if lora and settings.precision == "bfloat16" else torch.float32
    where = {} if revision is None else {"revision": revision}
    if looks_local(path) and not Path(path).is_dir():
        raise RunError("model", f"no model folder {path}", hint="name a folder with config.json, or a name on a hub")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, **where)
        model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=kind, **where)
    except Exception as error:
        raise _not_opened(path, error) from None
    if lora:
        model = _with_adapters(model, settings, seed)
    else:
        model.requires_grad_(requires_grad=True)
    try:
        model.to(device)
    except Exception as error:
        raise failure_of(error, f"moving {path} to {device}") from None
    inner = model.get_base_model() if lora else model
    tuned = sum(value.numel() for value in model.parameters() if value.requires_grad)
    facts = {
        "parameters": sum(value.numel() for value in inner.parameters()),
        "tuned_parameters": tuned,
        "commit": getattr(inner.config, "_commit_hash", None),
        "architecture": type(inner).__name__,
        "device": str(device),
    }
    keeps = "logits_to_keep" in inspect.signature(inner.forward).parameters
    return OpenModel(model, tokenizer, device, keeps, settings.precision, facts)


def device_of(name: str) -> Any:
    """Return a device by name; ``auto`` is the first GPU where there is one, else the CPU."""
    torch = load("torch")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise RunError("device", f"`{name}` is no device", hint="e.g. cpu, cuda, cuda:1, mps, auto") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        there = torch.cuda.device_count()
        raise RunError("device", f"device {name} is not there: {there} CUDA devices", hint='device = "cpu" or "auto"')
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise RunError("device", "device mps is not there", hint='device = "cpu" or "auto"')
    return device


def _with_adapters(model: Any, settings: TuningSettings, seed: int) -> Any:
    torch, peft = load("torch"), load("peft")
    torch.manual_seed(seed)
    config = peft.LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return peft.get_peft_model(model, config)


def _not_opened(path: str, error: Exception) -> RunError:
    """Say in one line why a model could not be opened."""
    said = " ".join(str(error).split())[:300]
    found = failure_of(error, f"opening {path}")
    if found.kind in ("memory", "library"):
        return found
    if Path(path).is_dir():
        return RunError("model", f"{path} holds no causal language model with a tokenizer: {said}")
    return RunError(
        "model",
        f"{path} could not be had from the hub: {type(error).__name__}: {said}",
        hint="check name, network and HF_TOKEN; offline, give a folder, or a model that the hub's cache has",
    )
