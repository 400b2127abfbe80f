"""The array namespace where a mistake is silent: copies, and reductions over no axis."""

import array_api_strict
import numpy as np
import pytest

import vkml
from vkml import array_api as xp

VALUES = np.array([[1.5, -2.0, 3.0], [0.0, 5.0, -6.0]], dtype=np.float32)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "var", "std", "any", "all"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_over_no_axis(name, keepdims, device):
    x = vkml.tensor(VALUES, device=device)
    mine = getattr(xp, name)(x, axis=(), keepdims=keepdims)
    wanted = getattr(array_api_strict, name)(
        array_api_strict.asarray(VALUES), axis=(), keepdims=keepdims
    )
    assert tuple(mine.shape) == wanted.shape
    np.testing.assert_array_equal(mine.numpy(), np.asarray(wanted))


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("dtype", [xp.float32, xp.int32])
def test_astype_copies_unless_told_otherwise(copy, dtype, device):
    x = vkml.tensor(VALUES, device=device)
    y = xp.astype(x, dtype, copy=copy)
    y[0, 0] = 9
    assert x[0, 0].item() == (1.5 if copy or dtype != x.dtype else 9)
    wide = xp.astype(xp.broadcast_to(x[0], (2, 3)), xp.float32)
    wide[0, 0] = 7
    assert wide[1, 0].item() == x[0, 0].item()
