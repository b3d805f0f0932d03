"""Tuning: ``python benchmarks/bench_tune.py`` (needs the extra ``tune``; ``--device cuda`` on a GPU).

A step of our runner beside one of a bare torch loop of the same model, adapters, examples and optimiser, which pads,
masks and takes the loss of the answers as transformers computes it. Rounds of both alternate; target: at most 1.2
times, by the median over rounds. On the CPU seconds are those of the processor, on one thread. Exit status 1 on a miss.
"""

from __future__ import annotations

import argparse
import sys
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchwright.tuning.encoding import Encoded
from benchwright.tuning.models import OpenModel
from benchwright.tuning.runner import Tuner
from benchwright.tuning.settings import TuningSettings

RATIO = 1.2
ROUNDS, STEPS = 9, 8
EXAMPLES, VOCABULARY = 256, 1024
SIZES = {"tiny": (64, 2), "small": (256, 4)}


def opened(hidden: int, layers: int, device: str, *, lora: bool) -> OpenModel:
    """A Qwen2 model with random weights."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    model: Any = Qwen2ForCausalLM(config)
    if lora:
        model = get_peft_model(
            model, LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM")
        )
    return OpenModel(model.to(device), None, torch.device(device), True, "float32", {})


def examples() -> list[Encoded]:
    """Examples of 20 to 60 tokens with answers of 1 to 4."""
    rng = np.random.default_rng(0)
    lengths, answers = rng.integers(20, 60, EXAMPLES), rng.integers(1, 5, EXAMPLES)
    drawn = zip(lengths, answers, strict=True)
    return [Encoded(rng.integers(0, VOCABULARY, length), int(answer)) for length, answer in drawn]


class Bare:
    """The loop that one would write by hand."""

    def __init__(self, model: Any, learned: list[Encoded], device: str, settings: TuningSettings) -> None:
        import torch

        self.model, self.learned, self.device, self.settings = model, learned, device, settings
        self.tuned = [value for value in model.parameters() if value.requires_grad]
        self.optimiser = torch.optim.AdamW(self.tuned, lr=settings.learning_rate, weight_decay=0.0, fused=True)
        self.step = 0

    def advance(self, steps: int) -> None:
        """Tune on so many steps."""
        import torch

        batch = self.settings.batch
        for _ in range(steps):
            start = self.step * batch % EXAMPLES
            chosen = self.learned[start : start + batch]
            longest = max(one.ids.size for one in chosen)
            ids = torch.zeros(batch, longest, dtype=torch.long)
            mask, labels = torch.zeros_like(ids), torch.full_like(ids, -100)
            for row, one in enumerate(chosen):
                size = one.ids.size
                ids[row, :size] = torch.from_numpy(one.ids)
                mask[row, :size] = 1
                labels[row, size - one.answer : size] = ids[row, size - one.answer : size]
            ids, mask, labels = (part.to(self.device) for part in (ids, mask, labels))
            loss = self.model(input_ids=ids, attention_mask=mask, labels=labels, use_cache=False).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.tuned, 1.0)
            self.optimiser.step()
            self.optimiser.zero_grad()
            self.step += 1


def compare(name: str, device: str, *, lora: bool) -> float:
    """Print both step times and return their ratio."""
    import torch

    hidden, layers = SIZES[name]
    settings = TuningSettings(amount=1, batch=8)
    learned = examples()
    ours = Tuner(opened(hidden, layers, device, lora=lora), learned, settings, seed=0)
    bare = Bare(opened(hidden, layers, device, lora=lora).model.train(), learned, device, settings)

    clock = process_time if device == "cpu" else perf_counter

    def timed(task: Any) -> float:
        start = clock()
        task()
        if device != "cpu":
            torch.cuda.synchronize()
        return (clock() - start) / STEPS

    pairs = [
        (timed(lambda: ours.advance(ours.step + STEPS)), timed(lambda: bare.advance(STEPS))) for _ in range(ROUNDS + 1)
    ][1:]
    ratio = median(mine / other for mine, other in pairs)
    mine, other = (1000 * median(pair[place] for pair in pairs) for place in (0, 1))
    tokens = 1000 * 8 * np.mean([one.ids.size for one in learned]) / mine
    method = "adapters" if lora else "all parameters"
    print(
        f"{name}, {method}: {mine:.1f} ms a step, a bare loop {other:.1f} ms, a ratio of {ratio:.2f};"
        f" {tokens:,.0f} tokens a second"
    )
    return ratio


def main() -> int:
    """Print step times, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    import torch

    torch.set_num_threads(1)
    ratios = [compare(name, device, lora=lora) for name in SIZES for lora in (True, False)]
    return int(max(ratios) > RATIO)


if __name__ == "__main__":
    sys.exit(main())
