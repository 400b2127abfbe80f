"""Checks a function of tensors, value and gradient, against an oracle in double precision.

The oracle is a NumPy function that shares no code with vkML. Gradients are compared with central
differences of the oracle, whose own error at double precision (about 1e-9) is far below the bound.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import vkml

STEP = 1e-5  # of central differences: balances truncation and rounding in double precision


def inputs(shape: Sequence[int], low: float, high: float, seed: int = 0) -> np.ndarray:
    """Uniform float32 numbers; the same for the same arguments."""
    generator = np.random.default_rng([seed, *shape])
    return generator.uniform(low, high, tuple(shape)).astype(np.float32)


def assert_close(actual: Any, expected: Any, units: float = 16) -> None:
    """Compares by the largest magnitude of `expected`, in units of float32's precision.

    Args:
        actual: A tensor.
        expected: What it should hold, in double precision.
        units: The largest error, as a multiple of 2^-23 times the largest expected magnitude, or
            times 1 if that is smaller: what is near 0 is so by cancellation of what is near 1.
    """
    expected = np.asarray(expected)
    array = actual.numpy()
    assert array.shape == expected.shape
    scale = np.max(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(array, expected, rtol=0, atol=units * 2.0**-23 * scale)


def check(
    function: Callable[..., Any],
    oracle: Callable[..., Any],
    arguments: np.ndarray | Sequence[np.ndarray],
    device: Any,
    units: float = 16,
) -> None:
    """Checks value and gradients of `function` with respect to its floating-point arguments.

    Args:
        function: Takes tensors, returns a tensor.
        oracle: Takes float64 (or integer) arrays, returns an array.
        arguments: One array, or one for each argument; float32 or integer.
        device: Where the tensors live.
        units: The largest error, as for `assert_close`.
    """
    arrays = [arguments] if isinstance(arguments, np.ndarray) else list(arguments)
    floating = [np.issubdtype(array.dtype, np.floating) for array in arrays]
    tensors = [
        vkml.tensor(array, device=device, requires_grad=is_float)
        for array, is_float in zip(arrays, floating, strict=True)
    ]
    exact = [
        array.astype(np.float64) if is_float else array
        for array, is_float in zip(arrays, floating, strict=True)
    ]
    expected = np.asarray(oracle(*exact))
    result = function(*tensors)
    assert_close(result, expected, units)

    cotangent = inputs(expected.shape, 0.5, 1.5, seed=1)
    result.backward(vkml.tensor(cotangent, device=device))
    for position, tensor in enumerate(tensors):
        if floating[position]:
            assert_close(tensor.grad, _differences(oracle, exact, position, cotangent), units)


def _differences(
    oracle: Callable[..., Any], arrays: list[np.ndarray], position: int, cotangent: np.ndarray
) -> np.ndarray:
    """The gradient of sum(oracle(...) * cotangent) with respect to one argument."""
    gradient = np.zeros(arrays[position].shape)
    for index in np.ndindex(gradient.shape):
        sums = []
        for step in (STEP, -STEP):
            moved = [array.copy() for array in arrays]
            moved[position][index] += step
            sums.append(np.sum(oracle(*moved) * cotangent))
        gradient[index] = (sums[0] - sums[1]) / (2 * STEP)
    return gradient
