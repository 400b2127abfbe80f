"""x[...] and x[...] = v with what Python programs put there, and what their errors say."""

import numpy as np
import pytest

import vkml
from checking import exact, inputs


def grid(device: object, *shape: int) -> tuple[object, np.ndarray]:
    array = inputs(shape, -1, 1)
    return vkml.tensor(array, device=device), array


INDICES = {
    "none": (None,),
    "none_alone": None,
    "list": [0, 2, 0],
    "negative": ([-1, 0],),
    "behind_a_slice": (slice(None), [1, 0]),
    "of_one": (slice(None), [1]),
    "after_an_integer": (1, [2, 0, 1]),
    "after_an_ellipsis": (..., [0, 1]),
    "with_new_axes": (None, slice(1, None), None, [1, 0]),
    "square": ([[0, 1], [2, 0]],),
    "middle": (slice(None), [2, 1], slice(None, 1)),
    "scalar_tensor": (1, 2),
}


@pytest.mark.parametrize("name", INDICES)
def test_reading_by_an_index(name: str, device: object) -> None:
    x, array = grid(device, 3, 3)
    index = INDICES[name]
    if name == "middle":
        x, array = grid(device, 3, 3, 2)
    np.testing.assert_array_equal(exact(x[index]), array[index])
    parts = index if isinstance(index, tuple) else (index,)
    tensors = tuple(
        vkml.tensor(part, device=device) if isinstance(part, (list, int)) else part
        for part in parts
    )
    np.testing.assert_array_equal(exact(x[tensors]), array[index])
    arrays = tuple(np.array(part) if isinstance(part, list) else part for part in parts)
    np.testing.assert_array_equal(exact(x[arrays]), array[index])


def test_gradients_of_picked_columns_add(device: object) -> None:
    x = vkml.tensor(inputs((2, 3), -1, 1), device=device, requires_grad=True)
    x[:, [0, 0, 2]].sum().backward()
    assert x.grad.tolist() == [[2, 0, 1]] * 2


def test_writing_by_an_index(device: object) -> None:
    x, array = grid(device, 2, 3)
    array = array.copy()
    x[None] = 2
    array[None] = 2
    x[0] = np.ones(1, np.float32)
    array[0] = np.ones(1)
    x[1, 1:] = vkml.tensor([[[5.0, 6.0]]], device=device)
    array[1, 1:] = [5, 6]
    np.testing.assert_array_equal(exact(x), array)
    with pytest.raises(vkml.ShapeError, match=r"\(2, 1\)"):
        x[0, :1] = vkml.ones(2, 1, device=device)


@pytest.mark.parametrize(
    ("read", "error", "message"),
    [
        (lambda x: x[5], vkml.IndexError, r"\[getitem\] index 5 .* axis 0 of extent 3"),
        (lambda x: x[2**70], vkml.IndexError, r"\[getitem\] index 9223372036854775807"),
        (lambda x: x[0, 0, 0], vkml.IndexError, r"\[getitem\] 3 indices .* rank 2"),
        (lambda x: x["a"], vkml.IndexError, r"\[getitem\] takes integers.*not 'a'"),
        (lambda x: x[1.5], vkml.IndexError, r"\[getitem\] takes integers.*not 1.5"),
        (lambda x: x[x], vkml.DTypeError, r"\[getitem\] the indices are float32"),
        (lambda x: x.__setitem__("a", 1), vkml.IndexError, r"\[setitem\] takes integers"),
        (lambda x: x.__setitem__((0, 0, 0), 1), vkml.IndexError, r"\[setitem\] 3 indices"),
        (lambda x: x.__setitem__(0, None), vkml.DTypeError, r"\[setitem\] takes tensors and num"),
        (lambda x: x.expand(-1, 3, 3), vkml.ArgumentError, r"\[expand\] -1 .* axis 0 .* is new"),
        (lambda x: vkml.tensor(None), vkml.DTypeError, r"\[tensor\] takes numbers, not None"),
        (lambda x: vkml.gather(x, 0, 1.5), vkml.DTypeError, r"\[gather\] takes integer tensors"),
        (lambda x: x @ 2.0, vkml.ShapeError, r"\[matmul\] operands need at least one axis"),
        (lambda x: vkml.max(x, dim=(0, 1)), vkml.ArgumentError, r"\[max\].*amax\(dim=\(0, 1\)\)"),
        (lambda x: x.reshape(x), vkml.ArgumentError, r"a tensor of shape \(3,\) .* not an integer"),
    ],
)
def test_what_is_wrong_is_said(read: object, error: type, message: str, device: object) -> None:
    x, array = grid(device, 3, 3)
    with pytest.raises(error, match=message):
        read(x)
    np.testing.assert_array_equal(exact(x), array)


@pytest.mark.parametrize(
    ("pick", "message"),
    [
        (lambda x, i: vkml.take(x, i, axis=0), r"\[take\]"),
        (lambda x, i: vkml.index_select(x, 0, i), r"\[index_select\]"),
        (lambda x, i: vkml.embedding(i, x), r"\[embedding\]"),
        (lambda x, i: x[i], r"\[getitem\]"),
        (lambda x, i: vkml.gather(x[:, :1], 0, i.reshape(-1, 1)), r"\[gather\]"),
    ],
)
@pytest.mark.parametrize("index", [3, -9, 2**32 + 1, 2**40, -(2**32) + 1])
def test_errors_name_the_operator_and_the_index(
    pick: object, message: str, index: int, device: object
) -> None:
    x = vkml.ones(3, 2, device=device).realize()
    indices = vkml.tensor([0, index], dtype=vkml.int64, device=device)
    message += rf" index {index} is out of bounds for an axis of extent 3"
    with pytest.raises(vkml.IndexError, match=message):
        pick(x, indices).tolist()
    assert x.sum().item() == 6


def test_negative_indices_are_refused_where_pytorch_refuses_them(device: object) -> None:
    x, array = grid(device, 3, 2)
    last = vkml.tensor([0, -1], device=device)
    refusing = {
        "gather": lambda: x.gather(0, last.reshape(-1, 1)),
        "index_select": lambda: x.index_select(0, last),
        "embedding": lambda: vkml.embedding(last, x),
        "embedding_bag": lambda: vkml.nn.functional.embedding_bag(last.reshape(1, 2), x),
        "scatter_add": lambda: x.scatter_add(0, last.reshape(-1, 1), x[:2, :1]),
    }
    for name, call in refusing.items():
        with pytest.raises(vkml.IndexError, match=rf"^\[{name}\] index -1 is out of bounds"):
            call().tolist()
    np.testing.assert_array_equal(exact(x[last]), array[[0, -1]])
    np.testing.assert_array_equal(exact(vkml.take(x, last, axis=0)), array[[0, -1]])


def test_small_integers_index_too(device: object) -> None:
    x, array = grid(device, 3, 2)
    places = vkml.tensor([2, 0], dtype=vkml.uint8, device=device)
    np.testing.assert_array_equal(exact(x.index_select(0, places)), array[[2, 0]])
    np.testing.assert_array_equal(exact(vkml.embedding(places, x)), array[[2, 0]])


def test_lists_of_indices(device: object) -> None:
    x, array = grid(device, 3, 2)
    np.testing.assert_array_equal(exact(vkml.embedding([2, 0], x)), array[[2, 0]])
    np.testing.assert_array_equal(exact(x.gather(0, [[2, 1]])), array[[2, 1], [0, 1]][None])
    np.testing.assert_array_equal(exact(vkml.take(x, [3, -1])), array.ravel()[[3, -1]])


def test_numbers_in_texts(device: object) -> None:
    x = vkml.tensor(1.25, device=device)
    assert f"{x:.1f} {x:>6.2f}" == "1.2   1.25"
    assert f"{vkml.ones(2, device=device)}".startswith("tensor(")
    assert round(x) == 1
    assert round(x, 1) == 1.2
    with pytest.raises(ValueError, match="format"):
        f"{vkml.ones(2, device=device):.2f}"


def test_tensors_among_numbers(device: object) -> None:
    a, b = vkml.tensor(1.5, device=device), vkml.tensor(2, device=device)
    assert vkml.tensor([a, b, 3]).tolist() == [1.5, 2, 3]
    assert vkml.tensor([vkml.ones(2, device=device), [2, 3]]).tolist() == [[1, 1], [2, 3]]
    assert vkml.tensor([b, 1]).dtype == vkml.int32
    assert vkml.tensor([]).dtype == vkml.float32
    assert vkml.tensor([[]]).shape == (1, 0)


def test_parts_of_nothing_join_to_nothing(device: object) -> None:
    x = vkml.zeros(0, 3, device=device)
    assert vkml.cat(x.split(2)).shape == (0, 3)
    assert vkml.cat(x.chunk(2)).shape == (0, 3)
    assert [part.shape for part in vkml.ones(5).split(2**62)] == [(5,)]


def test_seeds_are_integers_of_any_size() -> None:
    draws = []
    for seed in (-1, 2**64 - 1, 2**70 + 3, 3):
        vkml.manual_seed(seed)
        draws.append(vkml.rand(3).tolist())
    assert draws[0] == draws[1]
    assert draws[2] == draws[3]
    assert draws[0] != draws[2]


def test_gradients_are_dense_in_the_layout_of_their_tensor(device: object) -> None:
    w = vkml.tensor(inputs((3, 4), -1, 1), device=device, requires_grad=True)
    x = vkml.tensor(inputs((2, 5, 4), -1, 1), device=device)
    for product in (
        lambda: x @ w.transpose(0, 1),
        lambda: x @ w.transpose(0, 1).broadcast_to((2, 4, 3)),
        lambda: w.transpose(0, 1).contiguous() @ w,
        lambda: w.sum(),
        lambda: w.T,
    ):
        w.grad = None
        product().sum().backward()
        assert w.grad.strides == w.strides == (16, 4)
        w.grad.assign_(w.grad * 0)
        assert w.grad.sum().item() == 0


def test_very_many_equal_indices(device: object) -> None:
    """More than a software Vulkan driver's loops have turns; sums are of integers, thus exact."""
    count = 150_001
    source = np.arange(count) % 7
    index = vkml.zeros(count, dtype=vkml.int32, device=device)
    values = vkml.tensor(source, dtype=vkml.float32, device=device)
    base = vkml.zeros(3, device=device)
    assert base.scatter_add(0, index, values).tolist() == [source.sum(), 0, 0]
    assert base.scatter(0, index, values).tolist() == [source[-1], 0, 0]
    table = vkml.zeros(2, 9, device=device, requires_grad=True)
    vkml.embedding(index, table).sum().backward()
    assert table.grad.tolist() == [[count] * 9, [0] * 9]


BAD_INDICES = [
    (vkml.tensor([0.5]),),
    (vkml.tensor([True, False]),),
    (slice(None), 7),
    (7, [0, 1]),
    (0, 0, 0, [1]),
]


def test_errors_of_reading_and_writing_name_what_was_called() -> None:
    x = vkml.zeros(3, 3)
    for index in BAD_INDICES:
        with pytest.raises(vkml.VkmlError, match=r"^\[getitem\]"):
            x[index]
        with pytest.raises(vkml.VkmlError, match=r"^\[setitem\]"):
            x[index] = 1
    with pytest.raises(vkml.IndexError, match=r"\[index_put\]"):
        vkml.index_put(x, (vkml.tensor([0]),) * 3, 1.0)
    x[[0, 9]] = 1
    with pytest.raises(vkml.IndexError, match=r"\[setitem\] index 9 is out of bounds"):
        x.numpy()
    for function, name in ((vkml.zeros, "zeros"), (vkml.ones, "ones"), (vkml.rand, "rand")):
        with pytest.raises(vkml.VkmlError, match=rf"\[{name}\]"):
            function("text", 2)


def test_masked_scatter_needs_enough_elements(device: object) -> None:
    x = vkml.zeros(3, device=device).realize()
    mask = vkml.tensor([True, False, True], device=device)
    for count in (0, 1):
        source = vkml.ones(count, device=device)
        with pytest.raises(vkml.IndexError, match=r"\[masked_scatter\]"):
            vkml.masked_scatter(x, mask, source).numpy()
    nothing = vkml.masked_scatter(x, vkml.zeros_like(mask), vkml.ones(0, device=device))
    assert nothing.tolist() == [0, 0, 0]
