"""TRL's trainer on pairs: weights reach the loss, batches do not matter, what an evaluation says.

Skipped where TRL is not installed (``pip install "concordant[trl]"``).
"""

import os

import pytest

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
pytest.importorskip("trl", reason="TRL is not installed: the extra [trl]", exc_type=ImportError)
pytestmark = pytest.mark.filterwarnings("default")  # those of other libraries are not ours

import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from trl import RewardTrainer  # noqa: E402

import concordant.torch as ct  # noqa: E402
import trl_training as tt  # noqa: E402
from concordant.errors import InputError, UsageError  # noqa: E402
from concordant.torch.trl import PairsCollator  # noqa: E402
from two_processes import together  # noqa: E402

torch.set_num_threads(1)
EXACT = 1e-12


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def full():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    scorer = tt.model().double().eval()
    value, slope = tt.directly(scorer, tt.rows())
    torch.set_default_dtype(before)
    return value, slope


@pytest.mark.parametrize(("batch", "accumulated"), [(17, 1), (3, 1), (2, 4), (5, 2)])
def test_an_epoch_is_the_loss_of_all_votes(full, tmp_path, batch, accumulated):
    """17 pairs in batches that do not come out even: gradients add up to that of the whole, to 1e-12 in float64."""
    value, slope = full
    trainer, found, _ = tt.epoch(tmp_path, per_device_train_batch_size=batch, gradient_accumulation_steps=accumulated)
    assert torch.allclose(found, slope, rtol=0, atol=EXACT * slope.abs().max().item())
    assert {"weight", "votes", "chosen_ids"} <= {*trainer.train_dataset.column_names}
    assert sum(trainer.train_dataset["weight"]) == sum(row["weight"] for row in tt.rows())
    assert trainer.evaluate()["eval_loss"] == pytest.approx(value, rel=1e-9)


def test_two_processes(full, tmp_path):
    value, slope = full
    for found, said in together(tt.__file__, tmp_path):
        assert torch.allclose(found, slope, rtol=0, atol=EXACT * slope.abs().max().item())
        assert said["eval_loss"] == pytest.approx(value, rel=1e-9)
        rows = [row for row in tt.rows() if row["votes"]]
        best = sum((row["votes"] + row["weight"]) / 2 for row in rows) / sum(row["votes"] for row in rows)
        assert said["eval_vote_ceiling"] == pytest.approx(best, rel=EXACT)


def test_without_weights_it_is_the_loss_of_trl(tmp_path):
    """Equal weights, batches that come out even: step by step what RewardTrainer logs."""
    data = Dataset.from_list([{name: row[name] for name in ("prompt", "chosen", "rejected")} for row in tt.rows(12)])
    more = {"learning_rate": 0.1, "center_rewards_coefficient": 0.01}
    _, _, ours = tt.epoch(tmp_path, data, **more)
    theirs = RewardTrainer(
        tt.model().double(), tt.settings(tmp_path, **more), train_dataset=data, processing_class=tt.tokenizer()
    )
    theirs.train()
    logged = [[one["loss"] for one in log if "loss" in one] for log in (ours, theirs.state.log_history)]
    assert len(logged[0]) == 4 and logged[0] == pytest.approx(logged[1], rel=1e-12)


def test_weights_reach_the_loss(tmp_path):
    """A pair of weight 3 is three pairs, step by step, in one batch an epoch."""
    one, other = tt.rows(6, level=0)[:2]
    counted = Dataset.from_list([one | {"weight": 3, "votes": 3}, other | {"weight": 1, "votes": 1}])
    repeated = Dataset.from_list([one | {"weight": 1, "votes": 1}] * 3 + [other | {"weight": 1, "votes": 1}])
    more = {"learning_rate": 0.5, "num_train_epochs": 3, "per_device_train_batch_size": 4}
    logs = [tt.epoch(tmp_path, data, **more)[2] for data in (counted, repeated)]
    losses = [[one["loss"] for one in log if "loss" in one] for log in logs]
    assert losses[0][:1] != losses[0][1:2] and losses[0] == pytest.approx(losses[1], rel=1e-9)
    plain = Dataset.from_list([one | {"weight": 1, "votes": 1}, other | {"weight": 1, "votes": 1}])
    assert tt.epoch(tmp_path, plain, **more)[2][1]["loss"] != pytest.approx(losses[0][1], rel=1e-3)


def test_an_evaluation_says_how_far_votes_agree(tmp_path):
    """What is logged is vote_metrics of all pairs, level ones and none of the rows that fill the last batch."""
    trainer, *_ = tt.epoch(tmp_path)
    said = trainer.evaluate()
    scorer, words, data = trainer.model.eval(), tt.tokenizer(), tt.rows()
    with torch.no_grad():
        rewards = [
            torch.stack([scorer(torch.tensor([words(row["prompt"] + row[side] + "<eos>")["input_ids"]])).logits[0, 0]
                         for row in data])
            for side in ("chosen", "rejected")
        ]  # fmt: skip
    expected = ct.vote_metrics(*rewards, *(torch.tensor([row[name] for row in data]) for name in ("weight", "votes")))
    assert len(expected) == 5
    for name, value in expected.items():
        assert said[f"eval_{name}"] == pytest.approx(value, rel=1e-9)
    assert said["eval_accuracy"] == pytest.approx((rewards[0] > rewards[1]).double().mean().item())
    assert any("eval_of_ceiling" in one for one in trainer.state.log_history)
    again = trainer.evaluate(Dataset.from_list(data[:7]))  # another set, prepared as the first one
    assert again["eval_vote_ceiling"] != said["eval_vote_ceiling"]


def test_bfloat16_conversations_and_columns_that_are_kept(tmp_path):
    torch.set_default_dtype(torch.float32)
    data = Dataset.from_list(tt.rows(spoken=True))
    for more in ({"bf16": True}, {"bf16": True, "remove_unused_columns": False}):
        trainer, slope, log = tt.epoch(tmp_path, data, scorer=tt.model(), **more)
        exact = tt.epoch(tmp_path, data, scorer=tt.model())[2]
        losses = [[one["loss"] for one in said if "loss" in one] for said in (log, exact)]
        assert losses[0] == pytest.approx(losses[1], rel=0.02) and torch.isfinite(slope).all()
        batch = next(iter(trainer.get_train_dataloader()))
        assert batch["loss_weight"].shape == (3,) and batch["input_ids"].shape[0] == 6
        assert trainer.evaluate()["eval_vote_ceiling"] <= 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu(tmp_path):
    torch.set_default_dtype(torch.float32)
    logs = [tt.epoch(tmp_path, scorer=tt.model(), **more)[2] for more in ({}, {"use_cpu": False, "bf16": True})]
    losses = [[one["loss"] for one in log if "loss" in one] for log in logs]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


def test_long_pairs_are_counted(tmp_path):
    data = tt.rows()
    data[-1] = data[-1] | {"chosen": " ".join("a" * 40)}
    with pytest.warns(
        UserWarning, match=r"1 of 17 pairs of the train data \(weight \d of 4\d\) are longer than max_length=30"
    ):
        trainer, *_ = tt.epoch(tmp_path, Dataset.from_list(data), max_length=30)
    assert sum(trainer.train_dataset["weight"]) == sum(row["weight"] for row in data[:-1])


def test_what_is_refused(tmp_path):
    data = Dataset.from_list(tt.rows())
    with pytest.raises(UsageError, match="the train data is a stream"):
        tt.epoch(tmp_path, data.to_iterable_dataset(), max_steps=2)
    for weight, message in (
        ([-1.0] * 21, "21 of 21 rows of the train data have a weight that is no number of at least 0"),
        ([0.0] * 21, "no pair of the train data has a weight"),
        (["x"] * 21, "the column 'weight' of the train data holds no numbers"),
    ):
        with pytest.raises(InputError, match=message):
            tt.epoch(tmp_path, data.remove_columns("weight").add_column("weight", weight))
    collated = PairsCollator(0)([{"chosen_ids": [1], "rejected_ids": [2, 3], "margin": 0.5}])
    assert {*collated} == {"input_ids", "attention_mask", "margin"}
