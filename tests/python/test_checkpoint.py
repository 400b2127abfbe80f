"""Checkpointing: the same numbers, less memory."""

import gc
import re

import pytest

import vkml
from checking import assert_close, inputs
from vkml import nn
from vkml.utils.checkpoint import checkpoint, checkpoint_sequential


class Block(nn.Module):
    def __init__(self, width, hidden, drop=0.0):
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.drop = drop

    def forward(self, x):
        return x + nn.functional.dropout(self.down(self.up(x).tanh()).sin(), self.drop)


def gradients(forward, parameters, x):
    """Loss and gradients of one call, from the same random draws each time."""
    vkml.manual_seed(7)
    loss = forward(x).square().mean()
    loss.backward()
    found = [p.grad.numpy().astype("float64") for p in [*parameters, x]]
    for p in [*parameters, x]:
        p.grad = None
    return loss.item(), found


def leaf(shape, device, seed=0):
    return vkml.tensor(inputs(shape, -1, 1, seed), device=device, requires_grad=True)


@pytest.mark.parametrize("eager", [False, True])
def test_gradients_and_random_draws_are_the_same(eager, device):
    blocks = [Block(6, 10, 0.5) for _ in range(3)]
    parameters = [p for block in blocks for p in block.parameters()]

    def plain(x):
        for block in blocks:
            x = block(x)
        return x

    def nested(x):
        return checkpoint(lambda y: checkpoint(blocks[1], blocks[0](y)), x)

    def saved(x):
        return checkpoint(blocks[2], nested(x), use_reentrant=False)

    x = leaf((5, 6), device)
    loss, expected = gradients(plain, parameters, x)
    vkml.set_eager(eager)
    try:
        for forward in (saved, lambda x: checkpoint_sequential(blocks, 2, x)):
            again, found = gradients(forward, parameters, x)
            assert again == pytest.approx(loss, rel=1e-6)
            for mine, wanted in zip(found, expected, strict=True):
                assert_close(vkml.tensor(mine), wanted)
    finally:
        vkml.set_eager(False)


def test_many_arguments_and_results(device):
    x, y = leaf((3, 2), device), leaf((3, 2), device, 1)
    index = vkml.tensor([0, 2], device=device)

    def function(a, pair, *, scale):
        return {"s": (a * pair[0]).sin() * scale, "i": pair[1] + 1, "p": [a[pair[1]], None]}

    result = checkpoint(function, x, (y, index), scale=2.0)
    assert result["i"].tolist() == [1, 3]
    assert result["p"][1] is None
    (result["s"].sum() + result["p"][0].sum() * 3).backward()
    a, b = inputs((3, 2), -1, 1).astype("float64"), inputs((3, 2), -1, 1, 1).astype("float64")
    import numpy as np

    expected = 2 * b * np.cos(a * b)
    expected[[0, 2]] += 3
    assert_close(x.grad, expected)
    assert_close(y.grad, 2 * a * np.cos(a * b))


def test_gradients_can_be_differentiated_again(device):
    x, w = leaf((4,), device), leaf((4,), device, 1)
    y = checkpoint(lambda z: (z * z * w).sin(), x).sum()
    (first,) = vkml.grad(y, [x], create_graph=True)
    first.square().sum().backward()
    again, w2 = leaf((4,), device), leaf((4,), device, 1)
    (plain,) = vkml.grad((again * again * w2).sin().sum(), [again], create_graph=True)
    plain.square().sum().backward()
    assert_close(x.grad, again.grad.numpy().astype("float64"))
    assert_close(w.grad, w2.grad.numpy().astype("float64"))


def test_a_function_that_draws_more_the_second_time_is_refused(device):
    calls = []

    def function(x):
        calls.append(0)
        return x * sum((vkml.rand(3, device=device) for _ in calls), x)

    with pytest.raises(vkml.AutogradError, match="drew more random numbers"):
        checkpoint(function, leaf((3,), device))


def test_without_gradients_the_function_is_called_once(device):
    calls = []

    def function(x):
        calls.append(0)
        return x * 2

    with vkml.no_grad():
        assert checkpoint(function, leaf((1,), device)).item() == pytest.approx(
            2 * inputs((1,), -1, 1).item()
        )
    assert len(calls) == 1
    constant = checkpoint(function, vkml.ones(1, device=device))
    assert not constant.requires_grad


def test_segments_are_checked():
    with pytest.raises(vkml.ArgumentError, match="segments is 3 for 2"):
        checkpoint_sequential([nn.Identity(), nn.Identity()], 3, vkml.ones(1))


def arena_of(blocks, x, call):
    """Bytes that the plan of one forward and backward pass shares between its intermediates."""
    for block in blocks:
        x = call(block, x)
    parameters = [p for block in blocks for p in block.parameters()]
    found = vkml.grad(x.square().mean(), parameters, create_graph=True)
    with vkml.no_grad():
        total = sum(gradient.square().sum() for gradient in reversed(found))
    return int(re.search(r"arena (\d+) bytes", vkml.explain(total)).group(1))


def test_a_step_takes_less_memory(device):
    blocks = [Block(8, 64) for _ in range(8)]
    x = leaf((256, 8), device)
    plain = arena_of(blocks, x, lambda block, y: block(y))
    saved = arena_of(blocks, x, checkpoint)
    hidden = 256 * 64 * 4
    assert plain >= len(blocks) * hidden
    assert saved <= 4 * hidden


def test_a_loss_that_is_read_keeps_less_memory():
    """On the CPU, whose blocks are counted one by one."""
    blocks = [Block(8, 64) for _ in range(8)]
    x = leaf((256, 8), vkml.cpu)

    def kept(call):
        y = x
        for block in blocks:
            y = call(block, y)
        gc.collect()  # else what earlier tests left may go between the two counts
        vkml.synchronize()
        before = vkml.allocated_bytes(vkml.cpu)
        loss = y.square().mean()
        loss.item()
        after = vkml.allocated_bytes(vkml.cpu) - before
        loss.backward()
        return after

    vkml.realize([p for block in blocks for p in block.parameters()])
    hidden = 256 * 64 * 4
    assert kept(lambda block, y: block(y)) >= len(blocks) * hidden
    assert kept(checkpoint) <= hidden
