"""Assignment by index: NumPy's meaning of values, PyTorch's of gradients, on inputs found."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import vkml
from checking import exact
from test_properties import RELAXED, numbers, slices

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)
UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "+=": lambda a, b: a + b,
    "-=": lambda a, b: a - b,
    "*=": lambda a, b: a * b,
}


@st.composite
def indices(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Slices, arrays of indices that may repeat, or a mask."""
    kind = draw(st.sampled_from(["slices", "arrays", "mask", "mask of rows"]))
    if kind == "slices":
        return draw(slices(shape))
    if kind == "arrays":
        result = hnp.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=4)
        return draw(hnp.integer_array_indices(shape, result_shape=result))
    axes = shape if kind == "mask" else shape[:1]
    return draw(hnp.arrays(np.bool_, axes))


@st.composite
def values(draw: st.DrawFn, shape: tuple[int, ...]) -> np.ndarray:
    """Whole numbers that broadcast to a shape."""
    extents = [draw(st.sampled_from([extent, 1])) for extent in shape]
    kept = extents[draw(st.integers(0, len(extents))) :]
    return numbers(tuple(kept)) + draw(st.integers(-3, 3))


def window_of(array: np.ndarray, index: tuple) -> np.ndarray:
    """A view, where an index of integers alone would give a number."""
    return array[index if Ellipsis in index else (*index, Ellipsis)]


def change(x: Any, index: Any, how: str, value: Any) -> None:
    """x[index] = value, or x[index] += value and kin, written out as Python runs it."""
    if how == "=":
        x[index] = value
    elif how == "+=":
        x[index] += value
    elif how == "-=":
        x[index] -= value
    else:
        x[index] *= value


@RELAXED
@given(data=st.data(), shape=SHAPES)
def test_values_and_views_are_numpys(
    data: st.DataObject, shape: tuple[int, ...], device: object
) -> None:
    array = numbers(shape)
    x = vkml.tensor(array, device=device)
    if data.draw(st.booleans()):
        x = x + 0  # pending
    index = data.draw(slices(shape))
    views = [(x[index], window_of(array, index)), (x.T, array.T), (x[::-1], array[::-1])]
    recorded, expected = x * 2, array * 2
    for _ in range(data.draw(st.integers(1, 3))):
        where = data.draw(indices(shape))
        how = data.draw(st.sampled_from(["=", *UPDATES]))
        value = data.draw(values(array[where].shape))
        change(x, where, how, vkml.tensor(value, device=device))
        change(array, where, how, value)
        np.testing.assert_array_equal(exact(x), array)
        for ours, theirs in views:
            np.testing.assert_array_equal(exact(ours), theirs)
    np.testing.assert_array_equal(exact(recorded), expected)


@RELAXED
@given(data=st.data(), shape=SHAPES)
def test_changes_through_a_view_reach_its_base(
    data: st.DataObject, shape: tuple[int, ...], device: object
) -> None:
    array = numbers(shape)
    x = vkml.tensor(array, device=device)
    window = data.draw(slices(shape))
    view, expected = x[window], window_of(array, window)
    if expected.ndim == 0 or expected.size == 0:
        return
    where = data.draw(indices(expected.shape))
    how = data.draw(st.sampled_from(["=", *UPDATES]))
    value = data.draw(values(expected[where].shape))
    change(view, where, how, vkml.tensor(value, device=device))
    change(expected, where, how, value)
    np.testing.assert_array_equal(exact(view), expected)
    np.testing.assert_array_equal(exact(x), array)


@RELAXED
@given(data=st.data(), length=st.integers(2, 9))
def test_overlapping_windows_are_read_first(
    data: st.DataObject, length: int, device: object
) -> None:
    """x[a:b] = x[c:d] has the values from before, as in NumPy."""
    array = numbers((length,))
    x = vkml.tensor(array, device=device)
    extent = data.draw(st.integers(1, length))
    steps = (1, -1)
    windows = []
    for _ in range(2):
        start = data.draw(st.integers(0, length - extent))
        step = data.draw(st.sampled_from(steps))
        window = slice(start, start + extent)
        windows.append((window, step))
    (target, _), (source, step) = windows
    x[target] = x[source][::step]
    array[target] = array[source][::step].copy()
    np.testing.assert_array_equal(exact(x), array)
    x[target] += x[source][::step]
    array[target] += array[source][::step].copy()
    np.testing.assert_array_equal(exact(x), array)


def test_repeated_indices_count_once(device: object) -> None:
    x = vkml.zeros(4, device=device)
    x[[1, 1, 2, 1]] += vkml.tensor([1.0, 2.0, 3.0, 4.0], device=device)
    assert x.tolist() == [0, 4, 3, 0]
    x.index_put_([vkml.tensor([1, 1], device=device)], vkml.tensor([1.0, 2.0], device=device), True)
    assert x.tolist() == [0, 7, 3, 0]


def gradients_of_both(
    program: Callable[..., Any], arrays: list[np.ndarray], device: object
) -> None:
    """Runs a program in both frameworks and compares the gradients of its inputs."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    ours = [vkml.tensor(array, device=device, requires_grad=True) for array in arrays]
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    program(vkml, *ours).backward()
    program(torch, *theirs).backward()
    for mine, wanted in zip(ours, theirs, strict=True):
        expected = np.zeros(wanted.shape) if wanted.grad is None else wanted.grad.numpy()
        actual = np.zeros(expected.shape) if mine.grad is None else exact(mine.grad)
        np.testing.assert_array_equal(actual, expected)


@RELAXED
@given(data=st.data(), shape=SHAPES)
def test_gradients_are_pytorchs(
    data: st.DataObject, shape: tuple[int, ...], device: object
) -> None:
    array = numbers(shape)
    windows = slices(shape).filter(lambda index: not has_negative_step(index))
    seen = data.draw(windows)
    changes = []
    for _ in range(data.draw(st.integers(1, 3))):
        how = data.draw(st.sampled_from(["=", *UPDATES]))
        where = data.draw(windows if how != "=" else indices(shape))
        if has_negative_step(where):
            return
        if isinstance(where, tuple) and any(isinstance(part, np.ndarray) for part in where):
            where = tuple(distinct(where, shape))
        changes.append((where, how, data.draw(values(array[where].shape))))

    def program(module: Any, leaf: Any, *given: Any) -> Any:
        x = leaf * 2
        view = x[seen]
        for (where, how, _), value in zip(changes, given, strict=True):
            change(x, where, how, value)
        return (x * x).sum() + (view * 3).sum()

    gradients_of_both(program, [array, *(value for _, _, value in changes)], device)


def has_negative_step(index: Any) -> bool:
    """Which PyTorch does not take."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, slice) and (part.step or 1) < 0 for part in parts)


def distinct(index: tuple, shape: tuple[int, ...]) -> list:
    """The first occurrence of each place alone: PyTorch leaves open which of equal ones stays."""
    flat = np.ravel_multi_index(
        [part % extent for part, extent in zip(index, shape, strict=True)], shape
    )
    _, first = np.unique(flat, return_index=True)
    return [part.ravel()[first] for part in np.broadcast_arrays(*index)]


def test_a_leaf_is_not_assigned_to_while_gradients_are_recorded(device: object) -> None:
    x = vkml.zeros(3, device=device, requires_grad=True)
    mask = vkml.tensor([True, False, True], device=device)
    for index in (slice(0, 2), [0, 2], mask):
        with pytest.raises(vkml.AutogradError, match="leaf"):
            x[index] = 1.0
        with pytest.raises(vkml.AutogradError, match="leaf"):
            x[:2][0] = 1.0
    with vkml.no_grad():
        x[mask] = 2.0
        x[1:2] += 1.0
    assert x.tolist() == [2, 1, 2]
    (x * x).sum().backward()
    assert x.grad.tolist() == [4, 2, 4]


def test_a_mask_of_rank_0_is_an_axis(device: object) -> None:
    for truth in (True, False):
        array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
        x, mask = vkml.tensor(array, device=device), vkml.tensor(truth, device=device)
        np.testing.assert_array_equal(exact(x[mask]), array[np.array(truth)])
        number = vkml.tensor(4.0, device=device)
        assert number[mask].tolist() == ([4] if truth else [])
        x[mask] = 7.0
        array[np.array(truth)] = 7.0
        np.testing.assert_array_equal(exact(x), array)
