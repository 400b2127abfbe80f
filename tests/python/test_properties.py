"""Properties of shapes, strides and broadcasting, against NumPy, on inputs found by Hypothesis."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import vkml
from checking import exact

MAX_RANK = 4
# One module-wide device: Hypothesis calls a test many times, fixtures once.
RELAXED = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=MAX_RANK, min_side=0, max_side=5)
SMALL_INTEGERS = st.integers(-8, 8)


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    """Small whole numbers, so that every sum and product is exact in float32."""
    count = int(np.prod(shape))
    return ((np.arange(count) * 7) % 17 - 8).astype(np.float32).reshape(shape)


@st.composite
def slices(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple:
    """A basic index of a shape: integers, slices of any step, new axes, an ellipsis."""
    parts: list = []
    rank = len(shape)
    for extent in shape:
        kind = draw(st.sampled_from(["slice", "slice", "integer", "new axis", "all"]))
        if kind == "integer" and extent > 0:
            parts.append(draw(st.integers(-extent, extent - 1)))
            rank -= 1
        elif kind == "new axis" and rank < MAX_RANK:
            parts += [None, slice(None)]
            rank += 1
        elif kind == "all":
            parts.append(slice(None))
        else:
            bound = st.none() | st.integers(-extent - 2, extent + 2)
            step = draw(st.sampled_from([None, 1, 2, 3, -1, -2, -5]))
            parts.append(slice(draw(bound), draw(bound), step))
    if draw(st.booleans()):
        position = draw(st.integers(0, len(parts)))
        parts = [*parts[:position], Ellipsis, *parts[position:]]
    return tuple(parts)


@RELAXED
@given(data=st.data(), shape=SHAPES)
def test_indexing(data: st.DataObject, shape: tuple[int, ...], device: object) -> None:
    array = numbers(shape)
    index = data.draw(slices(shape))
    for x in (vkml.tensor(array, device=device), vkml.tensor(array, device=device) + 0):
        view = x[index]
        np.testing.assert_array_equal(exact(view), array[index])
        second = data.draw(slices(view.shape))
        np.testing.assert_array_equal(exact(view[second] * 2), array[index][second] * 2)


@RELAXED
@given(data=st.data(), shape=SHAPES)
def test_index_assignment(data: st.DataObject, shape: tuple[int, ...], device: object) -> None:
    array = numbers(shape)
    index = data.draw(slices(shape))
    x = vkml.tensor(array, device=device)
    before = x + 0
    x[index] = 100
    x[index] += vkml.tensor(numbers(array[index].shape), device=device)
    expected = array.copy()
    expected[index] = 100
    expected[index] += numbers(array[index].shape)
    np.testing.assert_array_equal(exact(x), expected)
    np.testing.assert_array_equal(exact(before), array)


@RELAXED
@given(shapes=hnp.mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_side=4, max_dims=4))
def test_broadcasting(shapes: hnp.BroadcastableShapes, device: object) -> None:
    arrays = [numbers(shape) + k for k, shape in enumerate(shapes.input_shapes)]
    a, b, c = (vkml.tensor(array, device=device) for array in arrays)
    expected = arrays[0] * arrays[1] + arrays[2]
    assert (a * b + c).shape == shapes.result_shape
    np.testing.assert_array_equal(exact(a * b + c), expected)
    chosen = np.where(arrays[0] > 0, arrays[1], arrays[2])
    np.testing.assert_array_equal(exact(vkml.where(a > 0, b, c)), chosen)


@RELAXED
@given(data=st.data(), shape=SHAPES)
def test_reductions(data: st.DataObject, shape: tuple[int, ...], device: object) -> None:
    array = numbers(shape)
    rank = len(shape)
    axes = data.draw(st.none() | st.sets(st.integers(0, max(rank - 1, 0)), min_size=1))
    axes = None if axes is None or rank == 0 else tuple(sorted(axes))
    keep = data.draw(st.booleans())
    order = tuple(data.draw(st.permutations(range(rank))))
    x = vkml.tensor(array, device=device).permute(order) * 1
    moved = array.transpose(order)
    result = x.sum(axis=axes, keepdims=keep)
    np.testing.assert_array_equal(exact(result), moved.sum(axis=axes, keepdims=keep))
    empty = any(moved.shape[axis] == 0 for axis in (range(rank) if axes is None else axes))
    if not empty:
        largest = x.amax(axis=axes, keepdims=keep)
        np.testing.assert_array_equal(exact(largest), moved.max(axis=axes, keepdims=keep))


@RELAXED
@given(
    batch=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, min_side=0, max_side=3),
    extents=st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    transposed=st.tuples(st.booleans(), st.booleans()),
)
def test_products(
    batch: hnp.BroadcastableShapes,
    extents: tuple[int, int, int],
    transposed: tuple[bool, bool],
    device: object,
) -> None:
    m, k, n = extents
    arrays, tensors = [], []
    for shape, matrix, flip in zip(batch.input_shapes, ((m, k), (k, n)), transposed, strict=True):
        stored = numbers((*shape, *(matrix[::-1] if flip else matrix)))
        tensor = vkml.tensor(stored, device=device)
        arrays.append(stored.swapaxes(-1, -2) if flip else stored)
        tensors.append(tensor.transpose(-1, -2) if flip else tensor)
    np.testing.assert_array_equal(exact(tensors[0] @ tensors[1]), arrays[0] @ arrays[1])


@RELAXED
@given(data=st.data(), shape=SHAPES)
def test_reshapes_of_views(data: st.DataObject, shape: tuple[int, ...], device: object) -> None:
    array = numbers(shape)
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    index = data.draw(slices(array.transpose(order).shape))
    view = array.transpose(order)[index]
    factors = [view.size] if view.size else [0]
    for divisor in (2, 3, 5):
        if len(factors) < MAX_RANK and factors[-1] and factors[-1] % divisor == 0:
            factors[-1:] = [divisor, factors[-1] // divisor]
    target = tuple(data.draw(st.permutations(factors)))
    x = vkml.tensor(array, device=device).permute(order)[index].reshape(target)
    np.testing.assert_array_equal(exact(x), view.reshape(target))


@RELAXED
@given(data=st.data(), shape=hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
def test_concat_and_split_undo_each_other(
    data: st.DataObject, shape: tuple[int, ...], device: object
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    size = data.draw(st.integers(1, 5))
    x = vkml.tensor(numbers(shape), device=device)
    parts = vkml.split(x, size, axis)
    assert len(parts) == -(-shape[axis] // size)
    np.testing.assert_array_equal(exact(vkml.cat(list(parts), axis)), numbers(shape))


@RELAXED
@given(
    values=hnp.arrays(np.float32, st.integers(1, 40), elements=st.floats(-100, 100, width=32)),
    dtype=st.sampled_from([vkml.float16, vkml.bfloat16, vkml.int32, vkml.uint8, vkml.bool]),
)
def test_casting_twice_changes_nothing(values: np.ndarray, dtype: object, device: object) -> None:
    once = vkml.tensor(values, device=device).to(dtype)
    again = once.to(vkml.float32).to(dtype)
    np.testing.assert_array_equal(exact(again), exact(once))


@RELAXED
@given(
    a=hnp.arrays(np.int32, 20, elements=st.integers(-(2**31), 2**31 - 1)),
    b=hnp.arrays(np.int32, 20, elements=st.integers(-(2**31), 2**31 - 1) | SMALL_INTEGERS),
)
def test_division_with_remainder(a: np.ndarray, b: np.ndarray, device: object) -> None:
    x, y = vkml.tensor(a, device=device), vkml.tensor(b, device=device)
    quotient, rest = x // y, x % y
    nonzero = exact(y) != 0
    np.testing.assert_array_equal(exact(quotient * y + rest)[nonzero], a[nonzero])
    assert (np.abs(exact(rest).astype(np.int64)) < np.abs(b.astype(np.int64)))[nonzero].all()
    assert (exact(rest)[nonzero] * np.sign(b[nonzero]) >= 0).all()


@RELAXED
@given(seed=st.integers(0, 2**63 - 1))
def test_seeds_give_one_stream_each(seed: int) -> None:
    vkml.manual_seed(seed)
    first = vkml.rand(64).tolist()
    vkml.manual_seed(seed)
    assert vkml.rand(64).tolist() == first
    vkml.manual_seed(seed ^ 1)
    assert vkml.rand(64).tolist() != first


NUMPY_DTYPES = {
    vkml.bool: np.bool_,
    vkml.uint8: np.uint8,
    vkml.int32: np.int32,
    vkml.int64: np.int64,
    vkml.float32: np.float32,
    vkml.float64: np.float64,
}
DTYPES = st.sampled_from(list(NUMPY_DTYPES))
# Operators whose results NumPy's dtypes hold exactly for small whole numbers.
PAIRS = ["add", "multiply", "maximum", "minimum", "equal", "less", "greater_equal", "logical_xor"]


def promoted(a: object, b: object) -> np.dtype:
    """PyTorch's common dtype: that of floats, whatever integers' width."""
    widest = np.promote_types(NUMPY_DTYPES[a], NUMPY_DTYPES[b])
    if a.is_floating_point != b.is_floating_point:
        widest = np.dtype(NUMPY_DTYPES[a if a.is_floating_point else b])
    return widest


def whole(shape: tuple[int, ...], dtype: object) -> np.ndarray:
    """Small whole numbers that every dtype holds, products of two as well."""
    count = int(np.prod(shape))
    return ((np.arange(count) * 7) % 12).astype(NUMPY_DTYPES[dtype]).reshape(shape)


@RELAXED
@given(
    data=st.data(),
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=4, max_dims=3),
    dtypes=st.tuples(DTYPES, DTYPES),
    name=st.sampled_from(PAIRS),
)
def test_dtypes_strides_and_broadcasting(
    data: st.DataObject,
    shapes: hnp.BroadcastableShapes,
    dtypes: tuple,
    name: str,
    device: object,
) -> None:
    arrays, tensors = [], []
    for shape, dtype in zip(shapes.input_shapes, dtypes, strict=True):
        # Every second element of a reversed or transposed block, in memory of its own.
        stored = whole(tuple(2 * extent for extent in shape), dtype)
        steps = tuple(slice(None, None, data.draw(st.sampled_from([2, -2]))) for _ in shape)
        order = tuple(data.draw(st.permutations(range(len(shape)))))
        back = tuple(int(place) for place in np.argsort(order))
        x = vkml.tensor(stored.transpose(order).copy(), device=device).permute(back)
        arrays.append(stored[steps])
        tensors.append(x[steps])
    common = promoted(*dtypes)
    expected = getattr(np, name)(*(array.astype(common) for array in arrays))
    # vkml.equal(a, b) is one answer, as in PyTorch.
    result = getattr(vkml, "eq" if name == "equal" else name)(*tensors)
    assert np.dtype(NUMPY_DTYPES[result.dtype]) == expected.dtype
    np.testing.assert_array_equal(exact(result), expected.astype(exact(result).dtype))


@RELAXED
@given(data=st.data(), dtype=DTYPES, keep=st.booleans())
def test_reductions_and_scans_of_every_dtype(
    data: st.DataObject, dtype: object, keep: bool, device: object
) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    array = whole(shape, dtype)
    x = vkml.tensor(array, device=device)
    wide = array.astype(np.float64 if dtype.is_floating_point else np.int64)
    for name in ("sum", "amax", "amin", "any", "all", "argmax", "argmin"):
        reference = getattr(np, name)(wide, axis=axis, keepdims=keep)
        found = exact(getattr(x, name)(dim=axis, keepdim=keep))
        np.testing.assert_array_equal(found, reference.astype(found.dtype), name)
    np.testing.assert_array_equal(exact(x.cumsum(axis)), np.cumsum(wide, axis))
    np.testing.assert_array_equal(exact(x.flip(axis)), np.flip(array, axis))
    np.testing.assert_array_equal(exact(vkml.sort(x, axis).values), np.sort(array, axis))
    places = data.draw(st.lists(st.integers(0, shape[axis] - 1), min_size=1, max_size=6))
    chosen = vkml.index_select(x, axis, vkml.tensor(places, device=device))
    np.testing.assert_array_equal(exact(chosen), np.take(array, places, axis))
