"""Draws against the distributions they come from, on every device."""

import numpy as np
import pytest
import scipy.stats

import vkml
from checking import exact

COUNT = 20000

DRAWS = {
    "uniform": (lambda: vkml.uniform(COUNT, -1, 3), scipy.stats.uniform(-1, 4)),
    "normal": (lambda: vkml.normal(2.0, 0.5, (COUNT,)), scipy.stats.norm(2, 0.5)),
    "exponential": (lambda: vkml.exponential(COUNT, 2.0), scipy.stats.expon(scale=0.5)),
    "gumbel": (lambda: vkml.gumbel(COUNT, 1.0, 2.0), scipy.stats.gumbel_r(1, 2)),
    "truncated_normal": (
        lambda: vkml.truncated_normal(COUNT, 0.5, 2.0, -1.0, 4.0),
        scipy.stats.truncnorm(-0.75, 1.75, 0.5, 2),
    ),
    "truncated far": (
        lambda: vkml.truncated_normal(COUNT, low=2.0, high=4.0),
        scipy.stats.truncnorm(2, 4),
    ),
    "truncated in a tail": (
        lambda: vkml.truncated_normal(COUNT, low=5.0, high=6.0),
        scipy.stats.truncnorm(5, 6),
    ),
    "truncated far out": (
        lambda: vkml.truncated_normal(COUNT, 1.0, 0.5, low=11.0, high=1e9),
        scipy.stats.truncnorm(20, 2e9, 1, 0.5),
    ),
    "truncated far below": (
        lambda: vkml.truncated_normal(COUNT, low=-1e9, high=-5.0),
        scipy.stats.truncnorm(-1e9, -5),
    ),
    "truncated before the tail": (
        lambda: vkml.truncated_normal(COUNT, low=-float("inf"), high=-4.0),
        scipy.stats.truncnorm(-np.inf, -4),
    ),
    "truncated to a part of a tail": (
        lambda: vkml.truncated_normal(COUNT, low=10.0, high=10.01),
        scipy.stats.truncnorm(10, 10.01),
    ),
    "truncated on one side": (
        lambda: vkml.truncated_normal(COUNT, low=-30.0, high=0.1),
        scipy.stats.truncnorm(-30, 0.1),
    ),
    "gamma": (lambda: vkml.gamma(vkml.full((COUNT,), 2.5)), scipy.stats.gamma(2.5)),
    "gamma below 1": (lambda: vkml.gamma(vkml.full((COUNT,), 0.4)), scipy.stats.gamma(0.4)),
    "uniform_": (lambda: vkml.zeros(COUNT).uniform_(1, 2), scipy.stats.uniform(1, 1)),
    "normal_": (lambda: vkml.zeros(COUNT).normal_(1, 2), scipy.stats.norm(1, 2)),
    "exponential_": (lambda: vkml.zeros(COUNT).exponential_(3), scipy.stats.expon(scale=1 / 3)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_follow_their_distribution(name: str, device: object) -> None:
    vkml.manual_seed(5)
    draw, expected = DRAWS[name]
    values = exact(draw())
    # Kolmogorov and Smirnov; the seed is fixed, so this cannot fail by chance.
    assert scipy.stats.kstest(values, expected.cdf).pvalue > 0.001
    assert not np.array_equal(values, exact(draw()))


def test_normal_takes_tensors(device: object) -> None:
    vkml.manual_seed(1)
    mean = vkml.tensor([[-10.0], [10.0]], device=device)
    drawn = vkml.normal(mean, vkml.full((1, 4000), 0.5, device=device))
    assert drawn.shape == (2, 4000)
    np.testing.assert_allclose(exact(drawn.mean(1)), [-10, 10], atol=0.05)
    np.testing.assert_allclose(exact(drawn.std(1)), [0.5, 0.5], atol=0.05)


def test_bernoulli(device: object) -> None:
    vkml.manual_seed(1)
    p = vkml.linspace(0, 1, 5, device=device).repeat_interleave(4000)
    shares = exact(vkml.bernoulli(p).reshape(5, 4000).mean(1))
    np.testing.assert_allclose(shares, np.linspace(0, 1, 5), atol=0.03)
    assert shares[0] == 0
    assert shares[4] == 1
    coins = exact(vkml.zeros(4000, device=device).bernoulli_(0.25))
    assert abs(coins.mean() - 0.25) < 0.03


def test_multinomial(device: object) -> None:
    vkml.manual_seed(1)
    weights = np.array([[1.0, 0.0, 3.0, 4.0], [0.0, 5.0, 0.0, 5.0]], dtype=np.float32)
    w = vkml.tensor(weights, device=device)
    drawn = exact(vkml.multinomial(w, 4000, replacement=True))
    for row, given in zip(drawn, weights, strict=True):
        shares = np.bincount(row, minlength=4) / 4000
        np.testing.assert_allclose(shares, given / given.sum(), atol=0.03)
        assert not shares[given == 0].any()
    several = exact(vkml.multinomial(w[:1].broadcast_to((3000, 4)), 2))
    assert (several[:, 0] != several[:, 1]).all()
    assert not (several == 1).any()
    first = np.bincount(several[:, 0], minlength=4) / 3000
    np.testing.assert_allclose(first, weights[0] / 8, atol=0.03)
    with pytest.raises(vkml.ArgumentError, match="multinomial"):
        vkml.multinomial(w, 5)


def test_permutations(device: object) -> None:
    vkml.manual_seed(1)
    order = exact(vkml.randperm(1000, device=device))
    assert order.dtype == np.int64
    assert sorted(order.tolist()) == list(range(1000))
    assert (order != np.arange(1000)).mean() > 0.95
    firsts = [int(vkml.randperm(3, device=device)[0].item()) for _ in range(300)]
    assert min(np.bincount(firsts, minlength=3)) > 70
    assert vkml.randperm(0, device=device).shape == (0,)


def test_bad_parameters_raise(device: object) -> None:
    for call in (
        lambda: vkml.exponential(3, -1.0),
        lambda: vkml.normal(0.0, -1.0, 3),
        lambda: vkml.truncated_normal(3, low=1.0, high=0.0),
        lambda: vkml.randperm(-1),
        lambda: vkml.uniform(3, 2.0, 1.0),
        lambda: vkml.uniform(3, 0.0, float("nan")),
        lambda: vkml.empty(2).uniform_(2, 1),
        lambda: vkml.empty(2).normal_(0, -1),
        lambda: vkml.empty(2).normal_(0, float("nan")),
        lambda: vkml.empty(2).log_normal_(0, -1),
        lambda: vkml.empty(2).cauchy_(0, -1),
        lambda: vkml.empty(2).bernoulli_(1.5),
        lambda: vkml.empty(2).exponential_(0),
        lambda: vkml.truncated_normal(3, std=0.0),
    ):
        with pytest.raises(vkml.ArgumentError, match=r"^\[\w+\] "):
            call()
    with pytest.raises(vkml.DTypeError, match="bernoulli"):
        vkml.bernoulli(vkml.ones(2, dtype=vkml.int32))


@pytest.mark.parametrize("dtype", [vkml.float16, vkml.bfloat16, vkml.float32], ids=str)
def test_uniform_draws_stay_below_their_limit(dtype: object, device: object) -> None:
    vkml.manual_seed(0)
    draws = exact(vkml.rand(1 << 20, dtype=dtype, device=device))
    assert draws.min() >= 0
    assert 0.99 < draws.max() < 1
    for low, high in [(-3.0, 5.0), (0.25, 0.375), (-2.0, -1.0)]:
        draws = exact(vkml.uniform(1 << 18, low, high, dtype=dtype, device=device))
        assert draws.min() >= low
        assert high - 0.05 * (high - low) < draws.max() < high


def test_gumbel_draws_are_finite(device: object) -> None:
    largest = 1 - 2.0**-24  # one draw in 2^24: the seed is such that it comes up
    vkml.manual_seed(0)
    draws = [vkml.rand(1 << 23, device=device).max().item() for _ in range(5)]
    assert draws[4] == largest
    vkml.manual_seed(0)
    for _ in range(5):
        values = vkml.gumbel(1 << 23, device=device)
    assert values.max().item() < float("inf")


INVALID = {
    "bernoulli above 1": (lambda x: vkml.bernoulli(x), [0.5, 1.5], "the probability is 1.5"),
    "bernoulli below 0": (lambda x: vkml.bernoulli(x), [-0.25, 1.0], "the probability is -0.25"),
    "bernoulli NaN": (lambda x: vkml.bernoulli(x), [0.0, np.nan], "the probability is nan"),
    "gamma below 0": (lambda x: vkml.gamma(x), [2.0, -1.0], "the concentration is -1"),
    "gamma at 0": (lambda x: vkml.gamma(x), [2.0, 0.0], "the concentration is -?0"),
    "gamma infinite": (lambda x: vkml.gamma(x), [np.inf, 1.0], "the concentration is inf"),
    "weights below 0": (lambda x: vkml.multinomial(x, 1), [-1.0, 2.0], "the weight is -1"),
    "weights of 0": (lambda x: vkml.multinomial(x, 1), [0.0, 0.0], "the sum of the weights is"),
    "weights NaN": (
        lambda x: vkml.multinomial(x, 1),
        [np.nan, 1.0],
        "the (weight|sum of the weights) is nan",
    ),
    "again below 0": (lambda x: vkml.multinomial(x, 1, True), [3.0, -2.0], "the weight is -2"),
    "again of 0": (lambda x: vkml.multinomial(x, 1, True), [0.0, 0.0], "the sum of the weights"),
}


@pytest.mark.parametrize("dtype", [vkml.float16, vkml.float32, vkml.float64], ids=str)
@pytest.mark.parametrize("name", INVALID)
def test_invalid_parameters_in_tensors_raise(name: str, dtype: object, device: object) -> None:
    draw, values, message = INVALID[name]
    x = vkml.tensor(values, dtype=dtype, device=device)
    kept = vkml.zeros(2, device=device)
    kept += 1
    operator = {"b": "bernoulli", "g": "gamma"}.get(name[0], "multinomial")
    with pytest.raises(vkml.ArgumentError, match=rf"^\[{operator}\] {message}"):
        draw(x).tolist()
    assert (vkml.ones(2, device=device) + kept).tolist() == [2, 2]


def test_an_invalid_draw_leaves_what_it_is_written_to(device: object) -> None:
    state = vkml.ones(2, device=device).realize()
    state.copy_(vkml.bernoulli(vkml.tensor([0.5, 2.0], device=device)))
    with pytest.raises(vkml.ArgumentError, match=r"\[bernoulli\] the probability is 2"):
        state.tolist()
    assert state.tolist() == [1, 1]
    draw = vkml.func.vmap(vkml.bernoulli)
    with pytest.raises(vkml.ArgumentError, match=r"\[bernoulli\]"):
        draw(vkml.tensor([[0.5], [2.0]], device=device)).tolist()
