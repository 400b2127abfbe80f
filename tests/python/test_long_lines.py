"""Sorting and scattering along lines of every length, from one element to many workgroups."""

import numpy as np
import pytest

import vkml
from checking import exact
from selection_cases import COMBINE

LENGTHS = [1, 2, 15, 16, 17, 31, 33, 64, 127, 700, 5000]
NUMBERS = [
    vkml.uint8,
    vkml.int32,
    vkml.int64,
    vkml.float16,
    vkml.bfloat16,
    vkml.float32,
    vkml.float64,
]


def numbers(shape: tuple[int, ...], dtype: object, device: object) -> object:
    """Few different numbers, so that many are equal; floats hold NaN, infinities and both zeros."""
    random = np.random.default_rng([*shape])
    if dtype.is_floating_point:
        values = np.array([-np.inf, -2.5, -0.0, 0.0, 1.0, 3.0, np.inf, np.nan])
    else:
        info = vkml.iinfo(dtype)
        values = np.array([info.min, info.min + 1, 0, 1, 5, info.max], dtype=np.int64)
    return vkml.tensor(random.choice(values, shape), device=device).to(dtype)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_argsort(dtype: object, descending: bool, device: object) -> None:
    for length in LENGTHS:
        x = numbers((length, 2), dtype, device)
        for view, axis in ((x, 0), (x.T, 1), (x.T.contiguous(), -1), (x.flip(0), 0)):
            array = exact(view)
            found = exact(vkml.argsort(view, axis, descending))
            keys = np.flip(array, axis) if descending else array
            expected = np.argsort(keys, axis, kind="stable")
            if descending:  # equal elements stay in their order
                expected = np.flip(array.shape[axis] - 1 - expected, axis)
            np.testing.assert_array_equal(found, expected, str((length, axis)))


@pytest.mark.parametrize("how", ["replace", *COMBINE])
@pytest.mark.parametrize("dtype", [vkml.float32, vkml.int64], ids=str)
def test_scatter(dtype: object, how: str, device: object) -> None:
    random = np.random.default_rng(3)
    combine = {"replace": lambda old, new: new, **COMBINE}[how]
    for count, extent, columns, kind in (
        (40, 7, 3, np.int32),
        (700, 9, 20, np.int64),
        (900, 700, 1, np.int32),
    ):
        base = random.integers(1, 4, (extent, columns)).astype(np.float32)
        source = random.integers(1, 3, (count, columns)).astype(np.float32)
        if how == "prod":
            source = np.where(random.random(source.shape) < 0.02, 2.0, 1.0).astype(np.float32)
        for shared in (False, True):
            index = random.integers(0, extent, (count, 1 if shared else columns)).astype(kind)
            index = np.broadcast_to(index, source.shape)
            expected = base.astype(np.float64)
            for i, j in np.ndindex(*source.shape):
                place = index[i, j], j
                expected[place] = combine(expected[place], source[i, j])
            tensors = [vkml.tensor(a, device=device).to(dtype) for a in (base, source)]
            given = vkml.tensor(index[:, :1] if shared else index, device=device).expand(
                count, columns
            )
            for axis in (0, 1):
                turned = [t.T if axis else t for t in (tensors[0], given, tensors[1])]
                if how == "replace":
                    result = vkml.scatter(turned[0], axis, turned[1], turned[2])
                else:
                    result = vkml.scatter_reduce(turned[0], axis, turned[1], turned[2], how)
                result = result.T if axis else result
                np.testing.assert_array_equal(exact(result), expected, str((count, shared, axis)))


def test_a_bad_index_among_many_is_reported(device: object) -> None:
    x = vkml.zeros(9, device=device).realize()
    index = vkml.arange(700, device=device) % 9
    index[431] = 9
    result = x.scatter_add(0, index, vkml.ones(700, device=device))
    with pytest.raises(IndexError, match=r"\[scatter_add\] index 9 .* extent 9"):
        result.tolist()
    assert x.tolist() == [0.0] * 9
