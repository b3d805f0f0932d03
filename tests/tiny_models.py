"""Tiny Qwen2 models with random weights, a byte-level tokenizer of their own, and items that they can learn."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")

COLOURS = ("red", "green", "blue", "white")
PROTOCOL = """
seeds = [0, 1]

[[models]]
name = "tiny"
path = "tiny"

[[models]]
name = "small"
path = "small"

[[benchmarks]]
name = "colours"
train = "train.jsonl"
test = "test.jsonl"
template = "Question: {question} Answer:"

[tuning]
method = "full"
amount = 24
every = 8
levels = [0, 8, 24]
batch = 8
learning_rate = 0.003
device = "cpu"
max_length = 64

[game]
replicates = 20
"""


def write_items(folder: Path, *, things: int = 24, seed: int = 0) -> None:
    """Write train.jsonl and test.jsonl: things whose colours the train split tells."""
    rng = np.random.default_rng(seed)
    colour = rng.integers(0, len(COLOURS), things)
    for name, wordings in (("train", ("what colour has", "say the colour of")), ("test", ("name the colour of",))):
        lines = []
        for wording in wordings:
            for thing in range(things):
                item = {
                    "doc_id": f"{name}-{len(lines)}",
                    "question": f"{wording} thing {thing}?",
                    "cluster": f"t{thing}",
                }
                item |= {"choices": list(COLOURS), "answer": int(colour[thing])}
                lines.append(json.dumps(item))
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_tokenizer(folder: Path, texts: list[str], *, special: bool = True) -> Any:
    """Train a byte-level tokenizer and save it; without ``special`` it has no token to pad with or to end on."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    made = ByteLevelBPETokenizer()
    made.train_from_iterator(texts, vocab_size=320, min_frequency=2, special_tokens=["<end>"], show_progress=False)
    named = {"eos_token": "<end>", "pad_token": "<end>"} if special else {}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made._tokenizer, **named)
    tokenizer.save_pretrained(folder)
    return tokenizer


def write_model(folder: Path, *, hidden: int = 32, seed: int = 0, special: bool = True, vocabulary: int = 320) -> None:
    """Save a Qwen2 model with random weights and its tokenizer."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    texts = [json.loads(line)["question"] for line in (folder.parent / "train.jsonl").read_text().splitlines()]
    write_tokenizer(folder, texts + list(COLOURS) * 4 + ["Question: Answer:"] * 8, special=special)
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        tie_word_embeddings=True,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)


def write_family(folder: Path, text: str = PROTOCOL) -> Path:
    """Write items, two models and a protocol; return the protocol's path."""
    write_items(folder)
    write_model(folder / "tiny", hidden=16)
    write_model(folder / "small", hidden=32)
    path = folder / "tune.toml"
    path.write_text(text, encoding="utf-8")
    return path
