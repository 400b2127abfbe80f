"""Checks a function of tensors, value and gradient, against an oracle in double precision.

The oracle is a NumPy function that shares no code with vkML. Gradients are compared with central
differences of the oracle, whose own error at double precision (about 1e-9) is far below the bound.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import vkml

# Digits of the mantissa, smallest normal and largest number of each floating dtype.
FLOATS = {
    vkml.float16: (11, 2.0**-14, 65504.0),
    vkml.bfloat16: (8, 2.0**-126, (2 - 2.0**-7) * 2.0**127),
    vkml.float32: (24, 2.0**-126, (2 - 2.0**-23) * 2.0**127),
    vkml.float64: (53, 2.0**-1022, float(np.finfo(np.float64).max)),
}

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
    array = actual.detach().numpy()
    assert array.shape == expected.shape
    scale = np.max(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(array, expected, rtol=0, atol=units * 2.0**-23 * scale)


def wide(array: np.ndarray) -> np.ndarray:
    """Floats in double precision, other arrays as they are."""
    return array.astype(np.float64) if np.issubdtype(array.dtype, np.floating) else array


def exact(tensor: Any) -> np.ndarray:
    """The elements of a tensor, halves and floats widened to float64, the others as they are."""
    detached = tensor.detach().cpu()
    if detached.dtype in FLOATS:
        return detached.to(vkml.float64).numpy()
    return detached.numpy()


def assert_ulps(actual: Any, expected: Any, units: float, context: Any = "") -> None:
    """Compares element by element, in units of the last place of the actual dtype.

    NaN equals NaN. A half may be one unit off: it is rounded from an f32 with an error of its own.
    Magnitudes below the smallest normal number may be flushed to 0, as Vulkan allows.

    Args:
        actual: A tensor.
        expected: What it should hold, in double precision or integers.
        units: The largest error.
        context: Named when the comparison fails.
    """
    array = exact(actual)
    expected = np.asarray(expected)
    assert array.shape == expected.shape, (array.shape, expected.shape, context)
    if actual.dtype not in FLOATS:
        np.testing.assert_array_equal(array, expected.astype(array.dtype), str(context))
        return
    expected = expected.astype(np.float64)
    digits, smallest, largest = FLOATS[actual.dtype]
    if digits <= 11:
        units = max(units, 1)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.maximum(np.abs(expected), smallest)))
        unit = np.exp2(np.minimum(exponent, np.floor(np.log2(largest))) - (digits - 1))
        slack = np.where(np.abs(expected) < 2 * smallest, smallest, 0)
        close = np.abs(array - expected) <= np.maximum(units, 0.5) * unit + slack
        overflows = (np.abs(expected) + np.maximum(units, 0.5) * unit > largest) & (
            array == np.copysign(np.inf, expected)
        )
    same = (array == expected) | (np.isnan(array) & np.isnan(expected))
    wrong = ~(same | close | overflows)
    if units == 0 and digits == 53:
        wrong = ~same & (slack == 0)
    if wrong.any():
        first = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
        error = abs(array[first] - expected[first]) / unit[first]
        raise AssertionError(
            f"{context}: {int(wrong.sum())} of {wrong.size} elements differ; at {first} "
            f"{array[first]!r}, not {expected[first]!r} ({error:.3g} units)"
        )


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
    wide = [
        array.astype(np.float64) if is_float else array
        for array, is_float in zip(arrays, floating, strict=True)
    ]
    expected = np.asarray(oracle(*wide))
    result = function(*tensors)
    assert_close(result, expected, units)

    cotangent = inputs(expected.shape, 0.5, 1.5, seed=1)
    result.backward(vkml.tensor(cotangent, device=device))
    for position, tensor in enumerate(tensors):
        if floating[position]:
            assert_close(tensor.grad, _differences(oracle, wide, position, cotangent), units)


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
