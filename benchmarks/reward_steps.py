"""What a step of ``concordant.torch.trl`` costs beside TRL's own: ``python -m benchmarks.reward_steps [--rounds N]``.

Two trainers of one small model (GPT-2, weights drawn) take the same batch in turn, so that whatever else the
machine does meets both; a step is forward, loss, what TRL logs, backward. The ratio of the medians is printed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")

import numpy as np
import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import GPT2Config, GPT2ForSequenceClassification, PreTrainedTokenizerFast
from trl import RewardConfig, RewardTrainer

from concordant.torch.trl import PairsRewardTrainer

WORDS, LENGTH, BATCH = 1000, 96, 8


def trainer(kind: type[RewardTrainer], folder: str, bf16: bool) -> RewardTrainer:
    """Make a trainer on drawn pairs."""
    words = {"<pad>": 0, "<eos>": 1} | {f"w{place}": place for place in range(2, WORDS)}
    made = Tokenizer(WordLevel(words, unk_token="w2"))
    made.pre_tokenizer = Whitespace()
    tokens = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="w2")
    rng = np.random.default_rng(0)
    said = [" ".join(f"w{word}" for word in rng.integers(2, WORDS, LENGTH)) for _ in range(2 * BATCH)]
    rows = [{"chosen": said[at], "rejected": said[-1 - at], "weight": 1 + at % 3, "votes": 5} for at in range(BATCH)]
    torch.manual_seed(0)
    size = {"n_positions": 256, "n_embd": 128, "n_layer": 4, "n_head": 4}
    own = {"vocab_size": WORDS, "num_labels": 1, "bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    settings = RewardConfig(
        folder, report_to="none", use_cpu=not torch.cuda.is_available(), per_device_train_batch_size=BATCH, bf16=bf16,
        gradient_checkpointing=False, disable_tqdm=True,
    )  # fmt: skip
    model = GPT2ForSequenceClassification(GPT2Config(**own, **size))
    return kind(model, settings, train_dataset=Dataset.from_list(rows), processing_class=tokens)


def main() -> None:
    """Print the medians and their ratio."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=60)
    asked.add_argument("--bf16", action="store_true")
    options = asked.parse_args()
    took: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        both = {"TRL": RewardTrainer, "concordant": PairsRewardTrainer}
        made = {name: trainer(kind, folder, options.bf16) for name, kind in both.items()}
        batch = {name: next(iter(one.get_train_dataloader())) for name, one in made.items()}
        for one in made.values():
            one.current_gradient_accumulation_steps = 1
        for round_ in range(options.rounds + 5):
            for name in made if round_ % 2 else reversed(made):
                made[name].model.zero_grad()
                start = time.perf_counter()
                made[name].training_step(made[name].model, dict(batch[name]))
                if round_ >= 5:
                    took.setdefault(name, []).append(time.perf_counter() - start)
    medians = {name: float(np.median(values)) for name, values in took.items()}
    ratios = np.array(took["concordant"]) / np.array(took["TRL"])
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{torch.get_num_threads()} threads"
    print(f"{where}: TRL {1e3 * medians['TRL']:.2f} ms, concordant {1e3 * medians['concordant']:.2f} ms a step")
    print(f"ratio of medians {medians['concordant'] / medians['TRL']:.3f}, median of ratios {np.median(ratios):.3f}")


if __name__ == "__main__":
    main()
