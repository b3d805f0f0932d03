"""Training by a benchmark's reward alone, without being shown an answer: policy gradient on its train split.

The policy chooses among an item's choices with the probabilities that its log-likelihoods give. One choice is drawn a
prompt, reward 1 if it is right, else 0, and the batch's mean reward is the baseline (REINFORCE). LoRA adapters on all
linear layers are trained with AdamW at a constant rate, so that every dose is a state that a run could have ended at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scoring import log_likelihoods, to_rows
from world import Item


@dataclass(frozen=True, slots=True)
class Rewarded:
    """How a model is trained by reward; ``doses`` are the steps after which it is scored."""

    doses: tuple[int, ...] = (50, 100, 200, 400)
    batch: int = 16
    rate: float = 2e-3
    rank: int = 8


def train_by_reward(
    model: Any,
    items: Sequence[Item],
    tokenizer: Any,
    *,
    how: Rewarded,
    seed: int,
    at_dose: Callable[[int, Any], None],
) -> None:
    """Train a model (in place), calling ``at_dose(step, model)`` at each dose."""
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    config = LoraConfig(r=how.rank, lora_alpha=2 * how.rank, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(model, config)
    model.train()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=how.rate, weight_decay=0.0)
    draws, queue = np.random.default_rng([seed, 0]), np.zeros(0, dtype=int)
    for step in range(1, max(how.doses) + 1):
        while queue.size < how.batch:
            queue = np.concatenate([queue, draws.permutation(len(items))])
        batch, queue = [items[place] for place in queue[: how.batch]], queue[how.batch :]
        loss = _loss(model, batch, tokenizer)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        if step in how.doses:
            at_dose(step, model)


def _loss(model: Any, batch: Sequence[Item], tokenizer: Any) -> Any:
    """Return the policy-gradient loss of one choice drawn for each prompt."""
    import torch

    policy = torch.log_softmax(log_likelihoods(model, to_rows(batch, tokenizer)), dim=1)
    drawn = torch.multinomial(policy.detach().exp(), 1)[:, 0]
    reward = (drawn == torch.tensor([item.answer for item in batch])).float()
    advantage = reward - reward.mean()
    return -(advantage * policy.gather(1, drawn[:, None])[:, 0]).mean()
