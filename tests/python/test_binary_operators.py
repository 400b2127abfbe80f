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
