"""Tokenizer, sizes and pre-training of the lab's models: from nothing, on the world's sentences, with checkpoints."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from world import World

VOCABULARY = 1024
END = "<|end|>"
DONE = "done.json"  # written last into a checkpoint
STATE = "optimizer.pt"
CONTEXT = 128


@dataclass(frozen=True, slots=True)
class Size:
    """One model, whatever its seed: a Llama configuration (transformers gives Qwen2's a tokenizer of its own).

    ``quiz`` is the share of its pre-training text that asks and answers: developers' data differ in how much of it
    resembles tests.
    """

    name: str
    hidden: int
    quiz: float = 0.0
    layers: int = 2

    def config(self, end: int) -> Any:
        """Return the configuration of transformers."""
        from transformers import LlamaConfig

        return LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=self.hidden,
            intermediate_size=3 * self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=max(2, self.hidden // 16),
            num_key_value_heads=max(2, self.hidden // 16),
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=end,
            pad_token_id=end,
        )


@dataclass(frozen=True, slots=True)
class Pretraining:
    """How a model is pre-trained; ``checkpoints`` are the steps at which it is kept."""

    steps: int = 1400
    checkpoints: tuple[int, ...] = (150, 350, 700, 1050, 1400)
    batch: int = 32
    length: int = 64
    rate: float = 0.5  # over the hidden size: wider models take smaller steps
    warm_up: int = 50

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.batch * self.length


def make_tokenizer(world: World, folder: Path) -> Any:
    """Train a byte-level BPE on the world's sentences and the train split's wording, and save it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    source = world.sentences(np.random.default_rng([world.seed, 10]), quiz=0.05)
    texts = [next(source) for _ in range(20_000)] + [item.prompt for item in world.items("train")]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=[END], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=END)
    fast.save_pretrained(folder)
    return fast


def text_blocks(world: World, tokenizer: Any, size: Size, how: Pretraining, seed: int) -> Iterator[np.ndarray]:
    """Blocks of token ids (batch, length + 1) without end: sentences one after the other, each after an end token."""
    source = world.sentences(np.random.default_rng([world.seed, 11, seed]), quiz=size.quiz)
    end, need = tokenizer.eos_token_id, how.batch * (how.length + 1)
    held: list[int] = []
    while True:
        while len(held) < need:
            for ids in tokenizer([next(source) for _ in range(512)])["input_ids"]:
                held += [end, *ids]
        yield np.array(held[:need]).reshape(how.batch, how.length + 1)
        held = held[need:]


def pretrain(
    size: Size,
    world: World,
    tokenizer: Any,
    folder: Path,
    *,
    how: Pretraining,
    seed: int,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train a model and save each checkpoint as ``folder/step-N``.

    A run that was killed goes on from its last checkpoint, to the same weights: the text follows from the seed, and the
    optimizer's state is kept beside the checkpoint until the last one is there.
    """
    import torch
    from transformers import AutoModelForCausalLM

    done = [step for step in how.checkpoints if (checkpoint(folder, step) / DONE).is_file()]
    if len(done) == len(how.checkpoints):
        return
    first, spent = max(done, default=0), 0.0
    torch.manual_seed(1_000 * world.seed + seed)
    if first:
        model = load(checkpoint(folder, first))
        spent = json.loads((checkpoint(folder, first) / DONE).read_text(encoding="utf-8"))["cpu_seconds"]
    else:
        model = AutoModelForCausalLM.from_config(size.config(tokenizer.eos_token_id))
    model.train()
    rate = how.rate / size.hidden
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    if first:
        optimizer.load_state_dict(torch.load(checkpoint(folder, first) / STATE, weights_only=True))
    began = time.process_time() - spent
    for step, block in zip(range(1, how.steps + 1), text_blocks(world, tokenizer, size, how, seed), strict=False):
        if step <= first:
            continue
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, step / how.warm_up)
        ids = torch.from_numpy(block)
        logits = model(input_ids=ids[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step in how.checkpoints:
            target = checkpoint(folder, step)
            model.save_pretrained(target)
            tokenizer.save_pretrained(target)
            if step < how.steps:
                torch.save(optimizer.state_dict(), target / STATE)
            facts = {"step": step, "tokens": step * how.tokens, "loss": round(loss.item(), 4), "seed": seed}
            facts |= {"parameters": model.num_parameters(), "cpu_seconds": round(time.process_time() - began, 1)}
            (target / DONE).write_text(json.dumps(facts), encoding="utf-8")
            say(f"{size.name} seed {seed} step {step}: loss {loss.item():.3f}, {facts['cpu_seconds']} s")
    for step in how.checkpoints:
        (checkpoint(folder, step) / STATE).unlink(missing_ok=True)


def load(folder: Path) -> Any:
    """Return a saved model."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder)


def checkpoint(folder: Path, step: int) -> Path:
    """Return where a checkpoint is kept."""
    return folder / f"step-{step}"
