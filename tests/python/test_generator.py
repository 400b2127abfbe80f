"""Generators: streams of random numbers beside vkML's own."""

import copy
import pickle

import pytest

import vkml
from vkml import nn
from vkml.data import random_split
from vkml.nn import init
from vkml.utils.checkpoint import checkpoint


def zeros(device):
    return vkml.zeros(40, device=device)


DRAWS = {
    "rand": lambda d, **g: vkml.rand(40, device=d, **g),
    "randn": lambda d, **g: vkml.randn((40,), device=d, **g),
    "randint": lambda d, **g: vkml.randint(0, 1000, (40,), device=d, **g),
    "randperm": lambda d, **g: vkml.randperm(40, device=d, **g),
    "uniform": lambda d, **g: vkml.uniform((40,), device=d, **g),
    "normal": lambda d, **g: vkml.normal(zeros(d), 1.0, **g),
    "truncated_normal": lambda d, **g: vkml.truncated_normal((40,), device=d, **g),
    "exponential": lambda d, **g: vkml.exponential((40,), device=d, **g),
    "gumbel": lambda d, **g: vkml.gumbel((40,), device=d, **g),
    "gamma": lambda d, **g: vkml.gamma(zeros(d) + 2, **g),
    "bernoulli": lambda d, **g: vkml.bernoulli(zeros(d) + 0.5, **g),
    "multinomial": lambda d, **g: vkml.multinomial(zeros(d) + 1, 40, replacement=True, **g),
    "uniform_": lambda d, **g: zeros(d).uniform_(**g),
    "normal_": lambda d, **g: zeros(d).normal_(**g),
    "exponential_": lambda d, **g: zeros(d).exponential_(**g),
    "bernoulli_": lambda d, **g: zeros(d).bernoulli_(**g),
    "random_": lambda d, **g: zeros(d).random_(1000, **g),
    "cauchy_": lambda d, **g: zeros(d).cauchy_(**g),
    "geometric_": lambda d, **g: zeros(d).geometric_(0.1, **g),
    "log_normal_": lambda d, **g: zeros(d).log_normal_(**g),
    "init.uniform_": lambda d, **g: init.uniform_(zeros(d), **g),
    "init.normal_": lambda d, **g: init.normal_(zeros(d), **g),
    "init.trunc_normal_": lambda d, **g: init.trunc_normal_(zeros(d), **g),
    "init.xavier_uniform_": lambda d, **g: init.xavier_uniform_(zeros(d).view(5, 8), **g),
    "init.xavier_normal_": lambda d, **g: init.xavier_normal_(zeros(d).view(5, 8), **g),
    "init.kaiming_uniform_": lambda d, **g: init.kaiming_uniform_(zeros(d).view(5, 8), **g),
    "init.kaiming_normal_": lambda d, **g: init.kaiming_normal_(zeros(d).view(5, 8), **g),
    "init.orthogonal_": lambda d, **g: init.orthogonal_(zeros(d).view(5, 8), **g),
    "init.sparse_": lambda d, **g: init.sparse_(zeros(d).view(5, 8), 0.2, **g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_depend_on_the_generator_alone(name, device):
    draw = DRAWS[name]
    generator = vkml.Generator(seed=3)
    vkml.manual_seed(0)
    first, second = (draw(device, generator=generator).tolist() for _ in range(2))
    after = vkml.rand(4).tolist()
    assert first != second
    vkml.manual_seed(1)
    vkml.rand(3)
    generator.manual_seed(3)
    assert draw(device, generator=generator).tolist() == first
    assert draw(device, generator=generator).tolist() == second
    vkml.manual_seed(0)
    assert vkml.rand(4).tolist() == after
    # A seed means one thing, whichever stream has it.
    vkml.manual_seed(3)
    assert draw(device).tolist() == first


def test_states_continue():
    generator = vkml.Generator().manual_seed(2**64 - 1)
    assert generator.initial_seed() == 2**64 - 1
    vkml.rand(3, generator=generator)
    state = generator.get_state()
    others = [copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))]
    others.append(vkml.Generator(device="cpu").set_state(state))
    expected = vkml.rand(3, generator=generator).tolist()
    for other in others:
        assert vkml.rand(3, generator=other).tolist() == expected
    generator.set_state(state)
    assert vkml.rand(3, generator=generator).tolist() == expected
    assert 0 <= generator.seed() < 2**64
    with pytest.raises(vkml.ArgumentError, match=r"\[set_state\].*get_state"):
        generator.set_state(vkml.zeros(2))
    with pytest.raises(vkml.DTypeError, match="generator"):
        vkml.rand(3, generator=5)


def test_a_draw_that_fails_leaves_the_stream():
    generator = vkml.Generator(1)
    vkml.manual_seed(0)
    expected = vkml.rand(3).tolist()
    vkml.manual_seed(0)
    with pytest.raises(vkml.DTypeError):
        vkml.rand(3, generator=generator, dtype=vkml.int32)
    assert vkml.rand(3).tolist() == expected


def test_splits_and_loaders_take_generators():
    first, second = (
        [list(part.indices) for part in random_split(range(9), [4, 5], vkml.Generator(7))]
        for _ in range(2)
    )
    assert first == second


def test_checkpoints_repeat_what_a_generator_gave(device):
    generator = vkml.Generator(5)
    x = vkml.ones(8, device=device, requires_grad=True)

    def noisy(x):
        noise = vkml.rand(8, device=device, generator=generator)
        return nn.functional.dropout(x * noise, 0.5) * vkml.rand(8, device=device)

    result = checkpoint(noisy, x, use_reentrant=False)
    result.sum().backward()
    assert x.grad.tolist() == result.tolist()
    assert generator.draws == 1


def test_recorded_functions_draw_from_the_common_stream(device):
    generator = vkml.Generator(5)
    noisy = vkml.jit(lambda x: x + vkml.rand(3, device=device, generator=generator))
    with pytest.raises(vkml.ArgumentError, match=r"recorded.*Leave generator out"):
        noisy(vkml.zeros(3, device=device))
    assert vkml.jit(lambda x: x + 1)(vkml.zeros(2, device=device)).tolist() == [1, 1]
