"""Samplers: who comes, how often, and the same again from the same seed."""

import numpy as np
import pytest

import vkml
from vkml import data


def test_in_order_and_at_random():
    assert list(data.SequentialSampler(range(4))) == [0, 1, 2, 3]
    sampler = data.RandomSampler(range(20), generator=3)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second
    assert list(data.RandomSampler(range(20), generator=3)) == first
    longer = list(data.RandomSampler(range(4), num_samples=10, generator=1))
    assert len(longer) == len(data.RandomSampler(range(4), num_samples=10)) == 10
    assert sorted(longer[:4]) == sorted(longer[4:8]) == [0, 1, 2, 3]
    drawn = list(data.RandomSampler(range(4), True, 4000, generator=1))
    # Each of four comes 1000 times, with a standard deviation of 27.
    assert np.bincount(drawn) == pytest.approx([1000] * 4, abs=140)
    assert list(data.RandomSampler([])) == []
    assert sorted(data.SubsetRandomSampler([5, 7, 9], generator=2)) == [5, 7, 9]


def test_weights_decide_how_often():
    weights = [0.0, 1.0, 3.0, 0.0, 4.0]
    drawn = list(data.WeightedRandomSampler(weights, 8000, generator=5))
    counts = np.bincount(drawn, minlength=5)
    assert counts[[0, 3]].tolist() == [0, 0]
    assert counts == pytest.approx([0, 1000, 3000, 0, 4000], abs=220)  # five deviations
    firsts = np.zeros(5)
    sampler = data.WeightedRandomSampler(weights, 3, replacement=False, generator=6)
    for _ in range(2000):
        chosen = list(sampler)
        assert sorted(chosen) == [1, 2, 4]
        firsts[chosen[0]] += 1
    assert firsts == pytest.approx([0, 250, 750, 0, 1000], abs=110)


def test_processes_share_a_pass():
    for drop_last, length in ((False, 4), (True, 3)):
        shares = []
        for rank in range(3):
            sampler = data.DistributedSampler(range(10), 3, rank, seed=4, drop_last=drop_last)
            assert len(sampler) == length == len(list(sampler))
            shares.append(list(sampler))
        together = sorted(number for share in shares for number in share)
        assert len(set(together)) == (9 if drop_last else 10)
    ordered = [list(data.DistributedSampler(range(5), 2, r, shuffle=False)) for r in range(2)]
    assert ordered == [[0, 2, 4], [1, 3, 0]]
    sampler = data.DistributedSampler(range(10), 1, 0)
    before = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != before


def test_batches_of_numbers():
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert len(data.BatchSampler(range(5), 2, False)) == 3
    with pytest.raises(TypeError, match="unknown"):
        len(data.BatchSampler(iter(range(5)), 2, False))


def test_a_loader_takes_samplers(device):
    rows = data.TensorDataset(vkml.arange(6, device=device))
    sampler = data.RandomSampler(rows, generator=1)
    loader = data.DataLoader(rows, 4, sampler=sampler)
    assert sorted(n for (batch,) in loader for n in batch.tolist()) == list(range(6))
    batches = data.BatchSampler([5, 4, 0], 2, False)
    loader = data.DataLoader(rows, batch_sampler=batches)
    assert len(loader) == 2
    assert [batch[0].tolist() for batch in loader] == [[5, 4], [0]]


@pytest.mark.parametrize(
    "build",
    [
        lambda: data.RandomSampler([1], num_samples=0),
        lambda: data.WeightedRandomSampler([1.0, -1.0], 1),
        lambda: data.WeightedRandomSampler([1.0, 0.0], 2, replacement=False),
        lambda: data.WeightedRandomSampler([0.0], 1),
        lambda: data.DistributedSampler([1], 2, 2),
        lambda: data.BatchSampler([1], 0, False),
    ],
)
def test_impossible_samplers_are_refused(build):
    with pytest.raises(vkml.ArgumentError):
        build()


def test_draws_of_a_generator_are_those_of_its_stream():
    one, two = data.Generator(9), data.Generator(9)
    words = one.uniform(5)
    assert one.draws == 1
    assert two.integers(1000, 5).tolist() == (words * 1000).astype(np.int64).tolist()
    assert 0 <= words.min() < words.max() < 1
