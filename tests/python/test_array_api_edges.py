"""The array namespace where a mistake is silent: copies, and reductions over no axis."""

import os
import subprocess
import sys

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


def test_what_is_broadcast_can_be_written_to(device):
    """SciPy writes to parts of what it has broadcast."""
    x = vkml.tensor([0.5, -1.0], device=device)
    wide = xp.broadcast_to(x, (3, 2))
    wide[wide < 0] = float("nan")
    assert np.isnan(wide.numpy()[:, 1]).all()
    one, other = xp.broadcast_arrays(x, vkml.zeros(2, 1, device=device))
    one[0, 0] = 7
    other[1, 1] = 8
    assert one.tolist() == [[7, -1], [0.5, -1]]
    assert other.tolist() == [[0, 0], [0, 8]]
    assert x.tolist() == [0.5, -1]


DERIVATIVE = """
import numpy as np
import vkml
from scipy.differentiate import derivative
from vkml import array_api as xp

x = vkml.tensor([0.3, 0.9])
found = derivative(xp.exp, x).df
assert isinstance(found, vkml.Tensor)
np.testing.assert_allclose(found.numpy(), np.exp(x.numpy()), rtol=1e-3)
"""


def test_scipy_differentiates():
    pytest.importorskip("scipy.differentiate")
    # SciPy reads this when it is imported.
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-c", DERIVATIVE],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
