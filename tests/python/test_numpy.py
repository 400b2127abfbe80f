"""NumPy's conversion protocol: who may write to what it returns, and when it copies."""

import numpy as np
import pytest

import vkml


def test_an_array_that_was_asked_for_as_a_copy_is_one(device: object) -> None:
    x = vkml.tensor([1.0, 2.0], device=device)
    array = np.array(x)
    array[0] = 5
    assert x.tolist() == [1, 2]
    x += 1
    assert array.tolist() == [5, 2]
    assert np.array(x, dtype=np.float64).flags.writeable


def test_an_array_without_a_copy_shares_memory_or_raises(device: object) -> None:
    x = vkml.tensor([1.0, 2.0], device=device)
    if device == vkml.cpu:
        shared = x.__array__(copy=False)
        assert not shared.flags.writeable
        assert np.shares_memory(shared, np.asarray(x))
        assert x.__array__(np.float32, copy=False).tolist() == [1, 2]
    else:
        with pytest.raises(ValueError, match=r"copy=False.*vulkan:0.*copy=None"):
            x.__array__(copy=False)
    with pytest.raises(ValueError, match="another dtype"):
        x.__array__(np.float64, copy=False)
    assert x.__array__(np.float64).tolist() == [1, 2]
