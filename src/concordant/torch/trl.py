"""Reward models by TRL on pairs whose votes are cancelled: a collator that keeps the weights, a trainer that uses them.

``pip install "concordant[trl]"``; then ``from concordant.torch.trl import PairsCollator, PairsRewardTrainer``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from concordant.errors import InputError, UsageError
from concordant.torch.agreement import vote_metrics

try:
    import datasets
    import trl
except ModuleNotFoundError as missing:
    if missing.name not in ("trl", "datasets"):
        raise
    raise ModuleNotFoundError(
        'concordant.torch.trl needs TRL, which is not installed: pip install "concordant[trl]"', name=missing.name
    ) from None

from trl.trainer.reward_trainer import DataCollatorForPreference

COLUMNS = ("weight", "votes", "loss_weight")
"""What stands beside the tokens of a pair: its net votes, its votes, and its weight over the mean weight."""


@dataclass
class PairsCollator(DataCollatorForPreference):  # type: ignore[misc]
    """TRL's collator of preferences, which also keeps weight and votes of each pair.

    Examples have ``chosen_ids`` and ``rejected_ids``, and of ``weight``, ``votes``, ``loss_weight`` what there is;
    these become real tensors (pairs,).

    >>> batch = PairsCollator(pad_token_id=0)([{"chosen_ids": [1, 2], "rejected_ids": [3], "weight": 2, "votes": 4}])
    >>> batch["input_ids"].tolist(), batch["weight"].tolist(), batch["votes"].tolist()
    ([[1, 2], [3, 0]], [2.0], [4.0])
    """

    def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the batch."""
        batch: dict[str, Any] = super().torch_call(examples)
        for name in COLUMNS:
            if name in examples[0]:
                batch[name] = torch.tensor([float(one[name]) for one in examples])
        return batch


class PairsRewardTrainer(trl.RewardTrainer):  # type: ignore[misc]
    """TRL's ``RewardTrainer`` on what ``concordant pairs`` writes: the loss Σ weight · −log σ(r_chosen − r_rejected).

    Arguments are those of ``RewardTrainer``; datasets have ``chosen``, ``rejected`` (with ``prompt`` or as whole
    conversations) and ``weight``, ``votes``; without weights every pair weighs 1 and it is TRL's own loss. Weights are
    divided by their mean over the training set, a fixed number, so the gradients of an epoch's steps add up to that of
    the loss of all votes, whatever the batch size, gradient accumulation and number of processes. Rows of weight 0 fill
    the last batch, in the place of copies of others; level pairs are not trained on. ``center_rewards_coefficient``
    weighs pairs alike. The loss is computed in float32 at least.

    ``evaluate`` adds ``eval_vote_accuracy``, ``eval_vote_ceiling``, ``eval_of_ceiling``, ``eval_calibration_error`` and
    ``eval_vote_log_loss`` (see ``vote_metrics``) over the pairs of all processes; ``eval_loss`` is Σ weight loss / Σ
    weight. Give it level pairs, too (``level=True``).

    Errors: UsageError for a stream (the mean weight of all pairs has to be known), InputError for weights that are
    negative, no numbers or all 0. Pairs longer than ``max_length`` are left out, as by TRL, with a warning that counts
    them.
    """

    data_collator: Any
    _signature_columns: Any

    def __init__(self, *given: Any, **options: Any) -> None:
        self._train_ready = False
        self._judged: list[Tensor] = []
        super().__init__(*given, **options)
        if type(own := self.data_collator) is DataCollatorForPreference:
            self.data_collator = PairsCollator(own.pad_token_id, pad_to_multiple_of=own.pad_to_multiple_of)

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        self._signature_columns = [*dict.fromkeys([*self._signature_columns, *COLUMNS])]

    def _prepare_dataset(self, dataset: Any, processing_class: Any, args: Any, dataset_name: str) -> Any:
        """Tokenize, weigh, and fill the last batch with rows of weight 0."""
        training, self._train_ready = not self._train_ready, True
        if not isinstance(dataset, datasets.Dataset):
            raise UsageError(
                f"the {dataset_name} data is a stream ({type(dataset).__name__}): load it whole, for the weights of "
                "all pairs have to be known"
            )
        if "loss_weight" in dataset.column_names:
            return dataset
        weight, votes = _weights(dataset, dataset_name)
        dataset = dataset.remove_columns([name for name in ("weight", "votes") if name in dataset.column_names])
        dataset = dataset.add_column("weight", weight).add_column("votes", votes)
        if training:
            if not weight.any():
                raise InputError(f"no pair of the {dataset_name} data has a weight: there is nothing to learn from")
            dataset = dataset.select(np.flatnonzero(weight))
        before = len(dataset), weight.sum()
        dataset = super()._prepare_dataset(dataset, processing_class, args, dataset_name)
        weight = np.array(dataset["weight"], float)
        if lost := before[0] - len(dataset):
            warnings.warn(
                f"{lost:,} of {before[0]:,} pairs of the {dataset_name} data (weight "
                f"{before[1] - weight.sum():,.10g} of {before[1]:,.10g}) are longer than max_length={args.max_length} "
                "tokens and are left out",
                stacklevel=2,
            )
        if training and not len(weight):
            raise InputError(f"no pair of the {dataset_name} data is left to learn from: all are longer")
        size = args.world_size * (args.train_batch_size if training else args.eval_batch_size)
        if spare := -len(dataset) % size:
            fill = dataset.select([0] * spare).remove_columns(["weight", "votes"])
            fill = fill.add_column("weight", np.zeros(spare)).add_column("votes", np.zeros(spare))
            dataset = datasets.concatenate_datasets([dataset, fill.select_columns(dataset.column_names)])
        weight = np.append(weight, np.zeros(spare))
        return dataset.add_column("loss_weight", weight / (weight.mean() or 1.0))

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the mean over the batch of weight times the loss of a pair; what is logged is TRL's."""
        beside = {name: inputs[name] for name in COLUMNS if name in inputs}
        tokens = {name: value for name, value in inputs.items() if name not in COLUMNS}
        usual, outputs = super().compute_loss(model, tokens, return_outputs=True, num_items_in_batch=num_items_in_batch)
        reward = outputs.logits.squeeze(-1)
        reward = reward.to(torch.promote_types(reward.dtype, torch.float32))
        chosen, rejected = reward.chunk(2)
        loss = usual
        if (weight := beside.get("loss_weight")) is not None:
            gap = chosen - rejected - tokens["margin"] if "margin" in tokens else chosen - rejected
            term = -logsigmoid(gap)
            if (centred := self.args.center_rewards_coefficient) is not None:
                term = term + centred * (chosen + rejected) ** 2
            loss = (weight.to(term.dtype) * term).mean()
        if self.model.training:
            steps = getattr(self, "current_gradient_accumulation_steps", self.args.gradient_accumulation_steps)
            loss = loss * (steps / self.args.gradient_accumulation_steps)  # by which it is divided: always the same
        elif "votes" in beside:
            rows = torch.stack([chosen, rejected, beside["weight"].to(reward), beside["votes"].to(reward)], dim=1)
            self._judged.append(self.accelerator.gather_for_metrics(rows.detach()).cpu())
        return (loss, outputs) if return_outputs else loss

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log; after an evaluation also how far the rewards agree with the votes."""
        if self._judged and not self.model.training:
            columns = torch.cat(self._judged).T
            self._judged = []
            chosen, rejected, _, votes = columns
            real = (chosen - rejected)[votes > 0]
            found = vote_metrics(*columns) | {
                "accuracy": (real > 0).double().mean().item(),
                "margin": real.mean().item(),
            }
            self._metrics["eval"].update({name: [value] for name, value in found.items()})
        super().log(logs, start_time)


def _weights(dataset: Any, name: str) -> tuple[Any, Any]:
    """Return weight and votes of each row; without them 1, or the weight."""
    weight: Any = np.ones(len(dataset))
    columns = []
    for column in ("weight", "votes"):
        if column in dataset.column_names:
            try:
                weight = np.array(dataset[column], np.float64)
            except (TypeError, ValueError):
                raise InputError(f"the column {column!r} of the {name} data holds no numbers") from None
            wrong = int((~np.isfinite(weight) | (weight < 0)).sum())
            if wrong:
                raise InputError(
                    f"{wrong:,} of {len(weight):,} rows of the {name} data "
                    f"have a {column} that is no number of at least 0"
                )
        columns.append(weight)
    return columns[0], columns[1]
