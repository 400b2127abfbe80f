"""What vkml.jit refuses to record, and recorded steps that fail: nothing has changed after."""

import numpy as np
import pytest

import vkml
from jit_loop import Loop, assert_same_bits
from vkml import optim


@pytest.mark.parametrize(
    "observe",
    [
        lambda x: x.item(),
        lambda x: x.numpy(),
        lambda x: bool(x > 0),
        lambda x: float(x.sum()),
        lambda x: repr(x),
        lambda x: x.tolist(),
        lambda x: x.nonzero(),
    ],
)
@pytest.mark.parametrize("computed", [True, False])
def test_observing_inside_is_an_error_that_changes_nothing(observe, computed, device):
    state = vkml.ones(1)

    @vkml.jit
    def step(x):
        state.assign_(state + 1)
        return observe(x if computed else x * 2)

    for _ in range(2):
        with pytest.raises(vkml.ArgumentError, match=r"\[jit\].*[Rr]eturn"):
            step(vkml.ones(1))
        assert state.item() == 1.0
        assert not vkml.is_recording()


def test_an_exception_leaves_everything_as_it_was(device):
    loop = Loop(device, "Adam")
    for number in range(2):
        loop.step(*loop.batch(number))
    before = loop.state()
    drawn = []

    @vkml.jit
    def step(x, y):
        loop.step(x, y)
        drawn.append(1)
        raise RuntimeError("enough")

    vkml.manual_seed(5)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="enough"):
            step(*loop.batch(2))
    assert_same_bits(before, loop.state())
    after_failures = vkml.rand(2).numpy()
    vkml.manual_seed(5)
    np.testing.assert_array_equal(after_failures, vkml.rand(2).numpy())
    assert len(drawn) == 2


def test_a_bad_index_in_a_replay_leaves_everything_as_it_was(device):
    loop = Loop(device, "SGD")
    step = vkml.jit(loop.step)
    x, y = loop.batch(0)
    step(x, y)
    before = loop.state()
    with pytest.raises(IndexError, match="cross_entropy"):
        step(x, vkml.full((8,), 9, dtype=y.dtype)).item()
    assert_same_bits(before, loop.state())
    assert np.isfinite(step(x, y).item())


def test_a_result_that_needs_a_gradient_is_an_error():
    weight = vkml.ones(2, requires_grad=True)
    step = vkml.jit(lambda x: weight * x)
    with pytest.raises(vkml.AutogradError, match="return detach"):
        step(vkml.ones(2))
    with vkml.no_grad():
        assert step(vkml.ones(2)).tolist() == [1.0, 1.0]
    outside = weight * 3
    with pytest.raises(vkml.AutogradError, match="crosses into"):
        vkml.jit(lambda x: x + 1)(outside)


def test_a_tensor_that_escapes_says_so():
    kept = []

    @vkml.jit
    def step(x):
        kept.append(x * 2)
        return x + 1

    step(vkml.ones(2))
    with pytest.raises(vkml.ArgumentError, match="did not return it"):
        kept[0].numpy()


def test_a_schedule_inside_is_an_error():
    optimizer = optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.raises(vkml.ArgumentError, match="Step it outside"):
        vkml.jit(scheduler.step)()
    assert optimizer.param_groups[0]["lr"] == 1.0


def test_making_a_leaf_inside_is_an_error_that_changes_nothing():
    tensor = vkml.ones(2)
    with pytest.raises(vkml.ArgumentError, match="Do it outside"):
        vkml.jit(lambda: tensor.requires_grad_())()
    assert not tensor.requires_grad
    assert tensor.grad is None
    assert tensor.requires_grad_().requires_grad


def test_seeding_inside_is_an_error():
    with pytest.raises(vkml.ArgumentError, match="Seed it outside"):
        vkml.jit(lambda: vkml.manual_seed(0))()


def test_arrays_as_arguments_are_an_error():
    with pytest.raises(vkml.DTypeError, match=r"vkml\.tensor\(array\)"):
        vkml.jit(lambda x: vkml.tensor(x) * 2)(np.ones(2))


def test_a_function_without_tensors_and_a_bad_argument():
    assert vkml.jit(lambda x: x)(3) == 3
    with pytest.raises(TypeError, match="takes a function"):
        vkml.jit(3)
    step = vkml.jit(test_a_function_without_tensors_and_a_bad_argument)
    assert step.__name__ == "test_a_function_without_tensors_and_a_bad_argument"


def test_what_others_assigned_and_not_read_fails_where_it_is_read(device):
    broken, fine = vkml.zeros(2), vkml.zeros(2)
    broken.assign_(vkml.ones(2).gather(0, vkml.tensor([0, 9])))
    fine.assign_(fine + 1)
    double = vkml.jit(lambda x: x * 2)
    assert double(vkml.ones(2)).tolist() == [2, 2]
    assert fine.is_computed
    assert fine.tolist() == [1, 1]
    with pytest.raises(vkml.IndexError, match="gather"):
        broken.tolist()
