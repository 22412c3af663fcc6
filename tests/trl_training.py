"""A tiny reward model from a configuration, trained by TRL on pairs: gradients of an epoch, in one process or two."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")

import numpy as np
import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch.nn.functional import logsigmoid
from transformers import GPT2Config, GPT2ForSequenceClassification, PreTrainedTokenizerFast, TrainerCallback
from trl import RewardConfig

from concordant.torch.trl import PairsCollator, PairsRewardTrainer
from two_processes import keep

WORDS = ["<pad>", "<eos>", "<unk>", "user", "assistant", "a", "b", "c", "d", "e", "f", "g", "h"]
CHAT = "{% for m in messages %}{{ m['role'] + ' ' + m['content'] + ' ' }}{% endfor %}"


def tokenizer() -> Any:
    """A tokenizer of a dozen words."""
    words = Tokenizer(WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = Whitespace()
    made = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", model_max_length=64
    )
    made.chat_template = CHAT
    return made


def model(**more: Any) -> Any:
    """The model, always the same."""
    torch.manual_seed(0)
    size = {"n_positions": 64, "n_embd": 8, "n_layer": 1, "n_head": 2} | more
    tokens = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    return GPT2ForSequenceClassification(GPT2Config(vocab_size=len(WORDS), num_labels=1, **tokens, **size))


def rows(count: int = 21, *, level: int = 4, spoken: bool = False) -> list[dict[str, Any]]:
    """Pairs as ``concordant pairs --level`` writes them."""
    rng = np.random.default_rng(2)
    made = []
    for place in range(count):
        prompt, chosen, rejected = (" ".join(rng.choice([*"abcdefgh"], rng.integers(1, 7))) for _ in range(3))
        weight = 0 if place < level else int(rng.integers(1, 5))
        row: dict[str, Any] = {"prompt": prompt + " ", "chosen": chosen, "rejected": rejected}
        if spoken:
            row = {
                name: [{"role": "user" if name == "prompt" else "assistant", "content": text}]
                for name, text in row.items()
            }
        made.append(row | {"weight": weight, "votes": weight + 2 * int(rng.integers(0, 3)) + 2 * (weight == 0)})
    return made


def settings(folder: Path | str, **more: Any) -> Any:
    """Settings of a run on the processor that writes nothing."""
    usual = {"report_to": "none", "use_cpu": True, "save_strategy": "no", "logging_steps": 1, "num_train_epochs": 1}
    usual |= {"disable_tqdm": True, "bf16": False, "gradient_checkpointing": False, "max_grad_norm": 0.0}
    usual |= {"learning_rate": 0.0, "optim": "sgd", "per_device_train_batch_size": 3, "per_device_eval_batch_size": 4}
    return RewardConfig(str(folder), **usual | more)


class Gradients(TrainerCallback):
    """Adds up the gradients of all steps."""

    def __init__(self) -> None:
        self.total: Any = 0.0

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        slopes = [one.grad.ravel() for one in more["model"].parameters() if one.grad is not None]
        self.total = self.total + torch.cat(slopes).clone()


def epoch(folder: Path | str, data: Any = None, *, scorer: Any = None, **more: Any) -> tuple[Any, Any, list[Any]]:
    """Train an epoch at rate 0; return the trainer, Σ over pairs of the gradient, and what was logged."""
    added = Gradients()
    data = Dataset.from_list(rows()) if data is None else data
    trainer = PairsRewardTrainer(
        model().double() if scorer is None else scorer, settings(folder, **more), train_dataset=data, eval_dataset=data,
        processing_class=tokenizer(), callbacks=[added],
    )  # fmt: skip
    trainer.train()
    args = trainer.args
    step = args.per_device_train_batch_size * args.world_size * args.gradient_accumulation_steps
    return trainer, added.total * step / len(trainer.train_dataset), trainer.state.log_history


def directly(scorer: Any, data: list[dict[str, Any]]) -> tuple[Any, Any]:
    """Σ weight −log σ(r_chosen − r_rejected) / Σ weight, each answer alone and so without padding, and its gradient."""
    words, total = tokenizer(), 0.0
    weight = sum(row["weight"] for row in data)
    for row in data:
        if row["weight"]:
            reward = [
                scorer(torch.tensor([words(row["prompt"] + row[side] + "<eos>")["input_ids"]])).logits[0, 0]
                for side in ("chosen", "rejected")
            ]
            total = total - row["weight"] / weight * logsigmoid(reward[0] - reward[1])
    total.backward()
    return total.item(), torch.cat([one.grad.ravel() for one in scorer.parameters() if one.grad is not None])


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    trainer, slope, _ = epoch(sys.argv[1], per_device_train_batch_size=2, gradient_accumulation_steps=2)
    assert isinstance(trainer.data_collator, PairsCollator) and trainer.args.world_size == 2
    keep(sys.argv[1], (slope, trainer.evaluate()))
