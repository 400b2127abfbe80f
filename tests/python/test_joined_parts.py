"""Parts of a concat are computed where they belong in it, and right wherever else they are read."""

import numpy as np
import pytest

import vkml
from checking import assert_close


def tensor(seed: int, *shape: int, device: object) -> object:
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return vkml.tensor(values, device=device)


def numbers(x: object) -> np.ndarray:
    return x.numpy().astype(np.float64)


def kernels_of(function: object, *arguments: object) -> int:
    function(*arguments).realize()
    with vkml.profile() as p:
        function(*arguments).realize()
    return len(p.runs)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_parts_are_written_in_place(axis: int, device: object) -> None:
    a, b = tensor(0, 3, 4, 5, device=device), tensor(1, 3, 4, 5, device=device)

    def joined(a: object, b: object) -> object:
        return vkml.cat([a * 2, b.exp(), a - b], axis).sum(axis)

    parts = [numbers(a) * 2, np.exp(numbers(b)), numbers(a) - numbers(b)]
    assert_close(joined(a, b), np.concatenate(parts, axis).sum(axis))
    # The parts are one kernel, the sum another.
    assert kernels_of(joined, a, b) == 2


def test_parts_that_others_read(device: object) -> None:
    a, b = tensor(2, 4, 6, device=device), tensor(3, 4, 6, device=device)
    w = tensor(4, 6, 6, device=device)
    for axis in (0, 1):
        first, second = a @ w, b.tanh()
        both = vkml.cat([first, second, first], axis)
        result = (
            both.sum(axis) + (first.transpose(0, 1) @ second).sum(axis - 1)[: both.shape[1 - axis]]
        )
        product = numbers(a) @ numbers(w)
        whole = np.concatenate([product, np.tanh(numbers(b)), product], axis).sum(axis)
        other = (product.T @ np.tanh(numbers(b))).sum(axis - 1)[: whole.shape[0]]
        assert_close(result, whole + other)


def test_concats_of_concats(device: object) -> None:
    a, b = tensor(5, 2, 3, device=device), tensor(6, 2, 3, device=device)
    inner = vkml.cat([a * 2, b * 3], 1)
    other = vkml.cat([b + 1, a + 1], 1)
    outer = vkml.cat([inner, other, inner], 0)
    result = (outer * outer).sum(0)
    x, y = numbers(a), numbers(b)
    left, right = np.concatenate([x * 2, y * 3], 1), np.concatenate([y + 1, x + 1], 1)
    expected = (np.concatenate([left, right, left], 0) ** 2).sum(0)
    assert_close(result, expected)


def test_a_part_that_is_kept_has_its_own_memory(device: object) -> None:
    a = tensor(7, 5, device=device)
    part = a * 2
    total = vkml.cat([part, a + 1]).sum()
    total.realize()
    part.mul_(0)
    assert_close(total, (numbers(a) * 2 + numbers(a) + 1).sum())
    assert part.tolist() == [0.0] * 5


def test_windows_of_parts_replaced_on_the_way(device: object) -> None:
    a = tensor(8, 4, 3, device=device)
    rows = a * 2
    before = vkml.cat([rows, a + 1], 0)
    rows[1] = 7.0
    after = vkml.cat([rows, before], 0).sum(0)
    x = numbers(a)
    changed = x * 2
    changed[1] = 7
    expected = np.concatenate([changed, x * 2, x + 1], 0).sum(0)
    assert_close(after, expected)


def test_half_floats_of_odd_lengths(device: object) -> None:
    parts = [tensor(9 + n, n, device=device).to(vkml.float16) for n in (1, 3, 5, 2)]
    total = vkml.cat([p * 2 for p in parts]).to(vkml.float32).cumsum(0)
    expected = np.cumsum(np.concatenate([(p * 2).to(vkml.float32).numpy() for p in parts]))
    assert_close(total, expected)
