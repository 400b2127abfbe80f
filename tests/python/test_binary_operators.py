"""Python's binary operators on what is not two tensors, and their errors."""

import operator

import numpy as np
import pytest

import vkml

OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
]


@pytest.mark.parametrize("apply", OPERATORS)
def test_numbers_and_arrays_stand_on_either_side(apply: object, device: object) -> None:
    values = np.array([1.0, -2.5, 4.0], np.float32)
    x = vkml.tensor(values)
    for other in (3, 2.5, np.array([2.0, 3.0, -4.0], np.float32)):
        np.testing.assert_allclose(apply(x, other).numpy(), apply(values, other), rtol=1e-6)
        if not isinstance(other, np.ndarray):
            np.testing.assert_allclose(apply(other, x).numpy(), apply(other, values), rtol=1e-6)


@pytest.mark.parametrize("apply", [*OPERATORS, operator.matmul, operator.and_, operator.lshift])
def test_strangers_are_left_to_decide(apply: object) -> None:
    class Stranger:
        def __radd__(self, other: object) -> str:
            return "radd"

    x = vkml.ones(2)
    if apply is operator.add:
        assert x + Stranger() == "radd"
    for pair in ((x, "text"), ("text", x) if apply is not operator.mod else (x, "text"), (None, x)):
        with pytest.raises(TypeError):
            apply(*pair)


def test_errors_are_those_of_the_function(device: object) -> None:
    with pytest.raises(vkml.ShapeError, match=r"\[add\].*\(3,\).*\(4,\)"):
        vkml.ones(3) + vkml.ones(4)
    with pytest.raises(vkml.ShapeError, match=r"\[matmul\]"):
        vkml.ones(3) @ vkml.ones(4, 2)
    with pytest.raises(vkml.DTypeError, match=r"\[bitwise_and\]"):
        vkml.ones(3) & vkml.ones(3)


def test_a_tensor_that_was_never_made_is_refused() -> None:
    empty = vkml.Tensor.__new__(vkml.Tensor)
    with pytest.raises(TypeError):
        empty + vkml.ones(2)


FLOATS_AND_INTEGERS = [
    vkml.float32,
    vkml.float16,
    vkml.bfloat16,
    vkml.int32,
    vkml.int64,
    vkml.uint8,
    vkml.bool,
]


@pytest.mark.parametrize("dtype", FLOATS_AND_INTEGERS, ids=str)
@pytest.mark.parametrize("exponent", [0.5, 1, 1.0, 2, 2.0, 3])
def test_the_power_operator_is_pow(exponent: float, dtype: object, device: object) -> None:
    x = vkml.tensor([0, 1, 3, 200], dtype=dtype, device=device)
    operated, called = x**exponent, vkml.pow(x, exponent)
    assert operated.dtype == called.dtype
    np.testing.assert_array_equal(
        operated.to(vkml.float64).numpy(), called.to(vkml.float64).numpy()
    )


def test_powers_at_the_edges(device: object) -> None:
    large = vkml.tensor([50000], device=device) ** 2.0
    assert large.dtype == vkml.float32
    assert large.item() == 2.5e9
    assert (vkml.tensor([float("-inf")], device=device) ** 0.5).item() == float("inf")
    with pytest.raises((OverflowError, vkml.ArgumentError)):
        vkml.ones(1, device=device) ** 10**400


def test_a_power_of_one_is_another_tensor(device: object) -> None:
    x = vkml.ones(3, device=device)
    y = x**1
    y += 10
    assert x.tolist() == [1, 1, 1]
    scalar = vkml.tensor(2.0, device=device)
    values, _ = vkml.sort(scalar)
    values += 1
    assert scalar.item() == 2


IN_PLACE = {
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
    operator.ifloordiv: operator.floordiv,
    operator.imod: operator.mod,
    operator.ipow: operator.pow,
}


def operators_of(tensor: vkml.Tensor) -> list[str]:
    """What is computed below a tensor, but for copies and numbers."""
    copies = {"assign", "cast", "contiguous", "leaf", "scalar", "to"}
    nodes = vkml._vkml._describe([tensor])["nodes"]
    return sorted(node["op"] for node in nodes if node["op"] not in copies)


@pytest.mark.parametrize("number", [2, 3.0, 4.0])
@pytest.mark.parametrize("in_place", IN_PLACE)
def test_operators_in_place_compute_what_the_others_do(
    in_place: object, number: float, device: object
) -> None:
    """X **= 2 is a square and x /= 2 a product, as x ** 2 and x / 2 are."""
    start = vkml.tensor([1.1, -2.7, 3.3], device=device).realize()
    changed = start.clone().realize()
    other_name = changed
    apart = IN_PLACE[in_place](start, number)
    assert in_place(changed, number) is other_name
    assert operators_of(changed) == operators_of(apart)
    np.testing.assert_array_equal(other_name.numpy(), apart.numpy())


def test_a_power_takes_no_modulus() -> None:
    with pytest.raises(TypeError):
        pow(vkml.ones(2), 2, 5)


def test_an_operator_that_fails_is_computed_once(device: object) -> None:
    def lookups() -> int:
        info = vkml.cache_info(device)
        return info.hits + info.misses

    y = vkml.ones(3).realize().gather(0, vkml.tensor([0, 9]).realize())
    vkml.set_eager(True)
    try:
        before = lookups()
        with pytest.raises(vkml.IndexError, match=r"\[gather\] index 9"):
            y + 1
        assert lookups() == before + 1
    finally:
        vkml.set_eager(False)
