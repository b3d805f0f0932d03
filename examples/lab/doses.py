"""Two ways to train on the benchmark's train split: supervised (SFT) and by its reward alone (RL).

Both train LoRA adapters (rank 8, all linear layers) with AdamW at a constant rate, so that every dose is a state that
a run could have stopped at. What differs is the signal:

* SFT: cross entropy of the right answer's tokens, given the prompt.
* RL: the policy chooses among the choices with the probabilities that its log-likelihoods give. One choice is drawn a
  prompt, reward 1 if it is right, else 0; policy gradient (REINFORCE) with the batch's mean reward as the baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scoring import log_likelihoods, to_rows
from world import Item

Kind = Literal["SFT", "RL"]


@dataclass(frozen=True, slots=True)
class Tuning:
    """How a model is tuned; ``doses`` are the steps after which it is scored."""

    doses: tuple[int, ...] = (0, 25, 50, 100, 200, 400)
    batch: int = 16
    rate: float = 2e-3
    rank: int = 8


def with_adapters(model: Any, how: Tuning) -> Any:
    """Return a model with LoRA adapters, and nothing else to train."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=how.rank, lora_alpha=2 * how.rank, target_modules="all-linear", task_type="CAUSAL_LM")
    return get_peft_model(model, config)


def tune(
    model: Any,
    items: Sequence[Item],
    tokenizer: Any,
    *,
    kind: Kind,
    how: Tuning,
    seed: int,
    at_dose: Callable[[int, Any], None],
) -> None:
    """Tune a model (in place), calling ``at_dose(step, model)`` at each dose."""
    import torch

    torch.manual_seed(seed)
    model = with_adapters(model, how)
    model.train()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=how.rate, weight_decay=0.0)
    order = np.random.default_rng([seed, 0])
    loss_of = _supervised if kind == "SFT" else _rewarded
    for step in range(max(how.doses) + 1):
        if step in how.doses:
            at_dose(step, model)
        if step == max(how.doses):
            break
        if step * how.batch % len(items) < how.batch:
            shuffled = order.permutation(len(items))
        at = np.arange(step * how.batch, (step + 1) * how.batch) % len(items)
        batch = [items[k] for k in shuffled[at]]
        loss = loss_of(model, batch, tokenizer)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()


def _supervised(model: Any, batch: Sequence[Item], tokenizer: Any) -> Any:
    """Return minus the mean log-likelihood of the right answers' tokens."""
    import torch

    prompts = tokenizer([item.prompt for item in batch])["input_ids"]
    answers = tokenizer([f" {item.choices[item.answer]}" for item in batch])["input_ids"]
    width = max(len(prompt) + len(answer) for prompt, answer in zip(prompts, answers, strict=True))
    ids = torch.full((len(batch), width), tokenizer.pad_token_id)
    labels = torch.full((len(batch), width), -100)
    for k, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        end = len(prompt) + len(answer)
        ids[k, :end] = torch.tensor(prompt + answer)
        labels[k, len(prompt) : end] = torch.tensor(answer)
    logits = model(input_ids=ids).logits[:, :-1]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten())


def _rewarded(model: Any, batch: Sequence[Item], tokenizer: Any) -> Any:
    """Return the policy-gradient loss of one choice drawn for each prompt."""
    import torch

    policy = torch.log_softmax(log_likelihoods(model, to_rows(batch, tokenizer)), dim=1)
    drawn = torch.multinomial(policy.detach().exp(), 1)[:, 0]
    reward = (drawn == torch.tensor([item.answer for item in batch])).float()
    advantage = reward - reward.mean()
    return -(advantage * policy.gather(1, drawn[:, None])[:, 0]).mean()
