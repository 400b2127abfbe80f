"""vkml.jit records again for another shape, dtype, Python value, global or mode, and says why."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkml
from checking import inputs
from jit_loop import Loop


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((3, 4), (4, 3)),
        ((3, 4), (12,)),
        ((1,), ()),
    ],
)
def test_another_shape_is_recorded_again(first, second, device):
    step = vkml.jit(lambda x: x * 2 + 1)
    for shape in (first, second, first, second):
        x = inputs(shape, -1, 1)
        np.testing.assert_array_equal(step(vkml.tensor(x)).numpy(), x * 2 + 1)
    assert step.recording_count == 2


@settings(max_examples=20, deadline=None)
@given(
    shape=st.lists(st.integers(0, 5), max_size=3).map(tuple),
    transposed=st.booleans(),
    scale=st.floats(-4, 4, width=32),
)
def test_any_shape_and_layout(shape, transposed, scale):
    def function(x, factor):
        return (x * factor).sum(), x.relu() - factor

    recorded = vkml.jit(function)
    for seed in range(2):
        x = vkml.tensor(inputs(shape, -2, 2, seed=seed))
        if transposed and x.ndim > 1:
            x = x.transpose(0, -1)
        for ours, plain in zip(recorded(x, scale), function(x, scale), strict=True):
            np.testing.assert_array_equal(ours.numpy(), plain.numpy())
    assert recorded.recording_count == 1


def test_dtype_strides_and_gradients_are_part_of_the_signature():
    step = vkml.jit(lambda x: x + x)
    x = vkml.tensor(inputs((3, 3), -4, 4))
    for tensor in (x, x.to(vkml.int32), x.transpose(0, 1), x.detach()):
        np.testing.assert_array_equal(step(tensor).numpy(), 2 * tensor.numpy())
    assert step.recording_count == 3
    with vkml.no_grad():
        step(x)
    assert step.recording_count == 4


@pytest.mark.parametrize(
    ("left", "right"), [(1, 2), (1.0, 1), (True, 1), ("a", "b"), (None, 0.0), (0.0, -0.0)]
)
def test_python_values_in_arguments_are_part_of_the_signature(left, right):
    seen = []

    @vkml.jit
    def step(x, *, option):
        seen.append(option)
        return x + 1

    for option in (left, right, left):
        step(vkml.zeros(2), option=option)
    assert [repr(option) for option in seen] == [repr(left), repr(right)]


SCALE = 2.0


def test_a_changed_global_is_recorded_again(monkeypatch):
    @vkml.jit
    def step(x):
        return x * SCALE

    assert step(vkml.ones(())).item() == 2.0
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert step(vkml.ones(())).item() == 3.0
    assert step.recording_count == 2


def helper(x):
    return x * SCALE


def test_a_changed_global_of_a_helper_is_recorded_again(monkeypatch):
    step = vkml.jit(lambda x: helper(x) + 1)
    assert step(vkml.ones(())).item() == 3.0
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert step(vkml.ones(())).item() == 6.0


def test_a_changed_closure_list_or_attribute_is_recorded_again():
    factor = 2.0
    factors = [1.0, 2.0]

    class Holder:
        def __init__(self):
            self.offset = 1.0
            self.unused = 0

        @vkml.jit
        def step(self, x):
            return x * factor * factors[1] + self.offset

    holder = Holder()
    assert holder.step(vkml.ones(())).item() == 5.0
    holder.unused = 1
    assert holder.step(vkml.ones(())).item() == 5.0
    assert Holder.step.recording_count == 1
    factor = 3.0
    assert holder.step(vkml.ones(())).item() == 7.0
    factors[1] = 1.0
    assert holder.step(vkml.ones(())).item() == 4.0
    holder.offset = 0.0
    assert holder.step(vkml.ones(())).item() == 3.0
    assert Holder.step.recording_count == 4


def test_training_and_evaluation_are_two_recordings(device):
    loop = Loop(device)
    x, _ = loop.batch(0)
    forward = vkml.jit(loop.model)
    with vkml.no_grad():
        for _ in range(2):
            for mode in (True, False):
                loop.model.train(mode)
                vkml.manual_seed(1)
                plain = loop.model(x).numpy() if not mode else None
                recorded = forward(x).numpy()
                if plain is not None:
                    np.testing.assert_array_equal(recorded, plain)
    assert forward.recording_count == 2


def test_recording_again_is_said_under_debug(monkeypatch, capsys):
    from vkml import recording

    monkeypatch.setattr(recording, "_debug", True)

    @vkml.jit
    def step(x, count):
        return x * count

    step(vkml.ones(2), 1)
    assert capsys.readouterr().err == ""
    step(vkml.ones(3), 1)
    assert "step is recorded again: an argument is float32 (3,) on cpu, was float32 (2,)" in (
        capsys.readouterr().err
    )
    step(vkml.ones(3), 2)
    assert "an argument is 2, was 1" in capsys.readouterr().err


def test_the_same_tensor_twice_is_another_signature():
    step = vkml.jit(lambda a, b: a * 10 + b)
    a, b = vkml.ones(()), vkml.full((), 2.0)
    assert [step(a, b).item(), step(a, a).item(), step(b, a).item()] == [12.0, 11.0, 21.0]
    assert step.recording_count == 2


def test_an_argument_that_is_captured_too_is_that_tensor_only():
    weight = vkml.ones(())
    step = vkml.jit(lambda x: x * 10 + weight)
    assert step(weight).item() == 11.0
    assert step(vkml.full((), 2.0)).item() == 21.0
    assert step(weight).item() == 11.0


def test_nested_functions_become_part_of_the_outer_one(monkeypatch):
    calls = []

    @vkml.jit
    def inner(x):
        calls.append("inner")
        return x * SCALE

    @vkml.jit()
    def outer(x):
        return inner(x) + inner(x + 1)

    for _ in range(3):
        assert outer(vkml.ones(())).item() == 6.0
    assert calls == ["inner", "inner"]
    assert inner.recording_count == 0
    monkeypatch.setitem(globals(), "SCALE", 1.0)
    assert outer(vkml.ones(())).item() == 3.0
