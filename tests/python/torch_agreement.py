"""Compares a function of vkML, value and gradients, with PyTorch's in double precision."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import vkml
from checking import assert_close, exact, inputs

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def _as_tuple(result: Any) -> tuple:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def assert_agrees(
    function: Callable[..., Any],
    reference: Callable[..., Any],
    arrays: Sequence[np.ndarray],
    device: Any,
    units: float = 64,
    gradients: bool = True,
) -> None:
    """Checks every floating or integer result, and the gradients of the floating arguments.

    Args:
        function: Takes vkML tensors, returns a tensor or several.
        reference: Takes PyTorch tensors, returns the same.
        arrays: Arguments for both; float32 is float64 for PyTorch.
        device: Where vkML's tensors live.
        units: The largest error, as for `checking.assert_close`.
        gradients: Whether gradients are compared.
    """
    floating = [np.issubdtype(array.dtype, np.floating) for array in arrays]
    ours = [
        vkml.tensor(array, device=device, requires_grad=is_float)
        for array, is_float in zip(arrays, floating, strict=True)
    ]
    theirs = [
        torch.tensor(array, dtype=torch.float64, requires_grad=True)
        if is_float
        else torch.tensor(array)
        for array, is_float in zip(arrays, floating, strict=True)
    ]
    results, expected = _as_tuple(function(*ours)), _as_tuple(reference(*theirs))
    assert len(results) == len(expected)
    total, total_expected = None, None
    for position, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        if not wanted.is_floating_point():
            np.testing.assert_array_equal(exact(result), wanted.numpy())
            continue
        assert_close(result, wanted.detach().numpy(), units)
        cotangent = inputs(tuple(wanted.shape), 0.5, 1.5, seed=position)
        part = (result * vkml.tensor(cotangent, device=device)).sum()
        part_expected = (wanted * torch.tensor(cotangent)).sum()
        total = part if total is None else total + part
        total_expected = part_expected if total_expected is None else total_expected + part_expected
    if not gradients:
        return
    total.backward()
    total_expected.backward()
    for mine, wanted in zip(ours, theirs, strict=True):
        if wanted.is_floating_point() and wanted.grad is not None:
            assert_close(mine.grad, wanted.grad.numpy(), units)
