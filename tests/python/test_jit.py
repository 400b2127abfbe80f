"""vkml.jit: the bits of the loop without it, state in place, recording again when it must."""

import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkml
import vkml.nn.functional as F
from checking import inputs
from vkml import _vkml, nn, optim

OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.01),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1),
    "Nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "AMSGrad": lambda p: optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01),
    "NAdam": lambda p: optim.NAdam(p, lr=0.01),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.01, lr_decay=0.1),
    "Adadelta": lambda p: optim.Adadelta(p),
    "Adamax": lambda p: optim.Adamax(p, lr=0.01),
    "Lion": lambda p: optim.Lion(p, lr=0.01),
}
SCHEDULES = {
    "cosine": lambda o: optim.lr_scheduler.CosineAnnealingLR(o, T_max=7),
    "steps": lambda o: optim.lr_scheduler.StepLR(o, step_size=2),
}


class Loop:
    """A network with dropout and batch norm, its optimiser, and batches."""

    def __init__(self, device, optimizer="SGD", clip=None):
        vkml.manual_seed(3)
        self.device = device
        self.model = nn.Sequential(
            nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 4)
        )
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters())
        self.clip = clip

    def batch(self, number):
        x = inputs((8, 6), -1, 1, seed=number)
        return vkml.tensor(x), vkml.tensor(np.arange(number, number + 8) % 4)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return loss

    def state(self):
        """Everything that a step changes, as arrays and numbers."""
        values = [*self.model.state_dict().values()]
        values += [parameter.grad for parameter in self.model.parameters()]
        for entries in self.optimizer.state.values():
            values += entries.values()
        return [v.numpy().copy() if isinstance(v, vkml.Tensor) else v for v in values]


def assert_same_bits(left, right):
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("schedule", [None, *SCHEDULES])
def test_a_training_loop_has_the_bits_of_the_one_without(optimizer, schedule, device):
    runs = []
    for recorded in (False, True):
        loop = Loop(device, optimizer)
        step = vkml.jit(loop.step) if recorded else loop.step
        scheduler = SCHEDULES[schedule](loop.optimizer) if schedule else None
        losses = []
        for number in range(6):
            losses.append(step(*loop.batch(number)).item())
            if scheduler:
                scheduler.step()
        runs.append([losses, *loop.state()])
        if recorded:
            assert step.recording_count == 1
    assert_same_bits(*runs)


def test_gradient_clipping_has_the_bits_of_the_loop_without(device):
    runs = []
    for recorded in (False, True):
        loop = Loop(device, "Adam", clip=0.05)
        step = vkml.jit(loop.step) if recorded else loop.step
        losses = [step(*loop.batch(number)).item() for number in range(4)]
        runs.append([losses, *loop.state()])
    assert_same_bits(*runs)


def test_the_function_runs_once_and_replays_run_no_python(device):
    calls = []
    weight = vkml.ones(3, requires_grad=True)

    @vkml.jit
    def step(x):
        calls.append(x)
        weight.grad = None
        loss = (weight * x).sum()
        loss.backward()
        with vkml.no_grad():
            weight.assign_(weight - 0.5 * weight.grad)
        return {"loss": loss, "name": ("sum", None)}

    for number in range(4):
        result = step(vkml.full((3,), 1.0))
        assert result["name"] == ("sum", None)
        assert result["loss"].item() == 3 - 1.5 * number
    assert len(calls) == 1
    np.testing.assert_array_equal(weight.numpy(), np.full(3, -1.0, np.float32))


def test_a_parameter_stays_where_it_is(device):
    loop = Loop(device, "Adam")
    step = vkml.jit(loop.step)
    for number in range(3):
        step(*loop.batch(number))
    before = vkml.allocated_bytes(device)
    nodes = None
    for number in range(200):
        step(*loop.batch(number % 4))
        if number == 20:
            nodes = _vkml._live_nodes()
    assert _vkml._live_nodes() == nodes
    assert vkml.allocated_bytes(device) == before


@pytest.mark.parametrize("read", [True, False])
def test_two_thousand_replays_leave_memory_flat(read, device):
    loop = Loop(device)
    step = vkml.jit(loop.step)
    batch = loop.batch(0)

    def run(count):
        for _ in range(count):
            loss = step(*batch)
            if read:
                loss.item()
        vkml.synchronize()
        del loss
        gc.collect()
        return _vkml._live_nodes(), vkml.allocated_bytes(device)

    assert run(100) == run(2000)


def test_random_draws_go_on_as_without(device):
    def draws(draw):
        vkml.manual_seed(7)
        first = [draw().numpy() for _ in range(4)]
        return [*first, vkml.rand(3).numpy()]

    def two():
        return vkml.rand(5) + vkml.randn(5)

    assert_same_bits(draws(two), draws(vkml.jit(two)))


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


def test_a_replaced_learning_rate_records_nothing():
    weight = vkml.ones(2, requires_grad=True)
    optimizer = optim.SGD([weight], lr=1.0)

    @vkml.jit
    def step():
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()

    for rate in (1.0, 0.5, 0.25):
        optimizer.param_groups[0]["lr"] = rate
        step()
    np.testing.assert_array_equal(weight.numpy(), np.float32([-0.75, -0.75]))
    assert step.recording_count == 1
    # A branch that the optimiser takes on a number must be taken alike.
    optimizer.param_groups[0]["weight_decay"] = 0.5
    step()
    assert step.recording_count == 2


def test_loading_an_optimiser_uses_the_new_state(device):
    def train(recorded):
        loop = Loop(device, "Adam")
        step = vkml.jit(loop.step) if recorded else loop.step
        for number in range(3):
            step(*loop.batch(number))
        saved = loop.optimizer.state_dict()
        for number in range(3):
            step(*loop.batch(number))
        loop.optimizer.load_state_dict(saved)
        for number in range(3):
            step(*loop.batch(number))
        return loop.state()

    assert_same_bits(train(False), train(True))


def test_snapshots_keep_their_values(device):
    weight = vkml.zeros(3)

    @vkml.jit
    def step():
        weight.assign_(weight + 1)

    kept = []
    for _ in range(4):
        kept.append(weight.snapshot())
        step()
    assert [tensor.tolist() for tensor in kept] == [[float(i)] * 3 for i in range(4)]
    assert weight.tolist() == [4.0] * 3


def test_arguments_are_changed_in_place_and_returned_as_they_are(device):
    @vkml.jit
    def step(x, view):
        x.assign_(x * 2)
        view[1:] = 0.0
        return x, view

    for _ in range(3):
        base = vkml.tensor([1.0, 2.0, 3.0])
        other = vkml.tensor([1.0, 2.0, 3.0])
        result = step(base, other)
        assert result[0] is base
        assert result[1] is other
        assert base.tolist() == [2.0, 4.0, 6.0]
        assert other.tolist() == [1.0, 0.0, 0.0]


def test_windows_on_one_array_are_one_recording(device):
    array = vkml.tensor(inputs((10, 3), -1, 1))
    step = vkml.jit(lambda x: x.sum(dim=0))
    for start in range(0, 8, 2):
        window = array[start : start + 2]
        np.testing.assert_array_equal(step(window).numpy(), window.sum(dim=0).numpy())
    assert step.recording_count == 1


def test_gradients_of_an_argument(device):
    @vkml.jit
    def step(x):
        (x * x).sum().backward()

    for value in (1.0, 2.0):
        x = vkml.full((2,), value).requires_grad_()
        step(x)
        assert x.grad.tolist() == [2 * value] * 2
    step(x)  # there is a gradient now, which is added to
    assert x.grad.tolist() == [8.0] * 2
    assert step.recording_count == 2


def test_several_updates_in_one_recording(device):
    runs = []
    for recorded in (False, True):
        loop = Loop(device, "momentum")
        batches = [loop.batch(number) for number in range(3)]

        def epoch(loop=loop, batches=batches):
            return [loop.step(x, y) for x, y in batches]

        run = vkml.jit(epoch) if recorded else epoch
        losses = [[loss.item() for loss in run()] for _ in range(3)]
        runs.append([losses, *loop.state()])
    assert_same_bits(*runs)


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


def test_eager_mode_runs_the_function():
    calls = []

    @vkml.jit
    def step(x):
        calls.append(1)
        return x.sum().item()

    vkml.set_eager(True)
    try:
        assert [step(vkml.ones(3)) for _ in range(2)] == [3.0, 3.0]
    finally:
        vkml.set_eager(False)
    assert len(calls) == 2
    assert step.recording_count == 0


def test_threads_share_recordings(device):
    total = vkml.zeros(4)

    @vkml.jit
    def add(x):
        total.assign_(total + x)
        return x * 2

    failures = []

    def work(value):
        try:
            results = [add(vkml.full((4,), value)).tolist() for _ in range(50)]
            assert results == [[2 * value] * 4] * 50
        except Exception as error:  # a thread's failure must fail the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert total.tolist() == [50.0 * (0 + 1 + 2 + 3)] * 4
    assert add.recording_count == 1


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


def test_numbers_and_tensors_of_an_optimiser_of_ones_own(device):
    """Branches and conversions of recorded numbers, as optimisers write them."""

    class Own(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.5, "power": 0.75, "warm": True})

        def _update(self, parameter, gradient, state, group):
            if "step" not in state:
                state["step"] = 0
                state["sum"] = vkml.zeros_like(parameter)
            state["step"] += 1
            rate = group["lr"] / state["step"] ** group["power"]
            if state["step"] > 3 and group["warm"]:
                rate = -rate
            state["sum"].assign_(state["sum"] + gradient / state["step"])
            parameter.assign_(parameter - state["sum"] * rate)

    runs = []
    for recorded in (False, True):
        weight = vkml.tensor(inputs((5,), -1, 1)).requires_grad_()
        optimizer = Own([weight])

        def step(weight=weight, optimizer=optimizer):
            optimizer.zero_grad()
            (weight * weight).sum().backward()
            optimizer.step()

        run = vkml.jit(step) if recorded else step
        for _ in range(6):
            run()
        entries = optimizer.state[weight]
        assert entries["step"] == 6
        runs.append([weight.numpy(), entries["sum"].numpy()])
        if recorded:
            assert run.recording_count == 2  # before and after the branch
    assert_same_bits(*runs)


def test_a_function_without_tensors_and_a_bad_argument():
    assert vkml.jit(lambda x: x)(3) == 3
    with pytest.raises(TypeError, match="takes a function"):
        vkml.jit(3)
    step = vkml.jit(test_a_function_without_tensors_and_a_bad_argument)
    assert step.__name__ == "test_a_function_without_tensors_and_a_bad_argument"


def test_a_model_that_holds_its_recorded_step_is_collected():
    class Trainer:
        def __init__(self):
            self.model = nn.Linear(2, 2)
            self.step = vkml.jit(self.forward)

        def forward(self, x):
            return self.model(x).detach()

    trainer = Trainer()
    trainer.step(vkml.ones(1, 2))
    dead = weakref.ref(trainer.model)
    del trainer
    gc.collect()
    assert dead() is None


def test_functions_of_functions_inside():
    def function(x):
        return (x * x * x).sum()

    step = vkml.jit(lambda x: vkml.func.grad(function)(x))
    for value in (1.0, 2.0):
        assert step(vkml.full((2,), value)).tolist() == [3 * value * value] * 2
    assert step.recording_count == 1


def test_forgetting_recordings():
    step = vkml.jit(lambda x: x + 1)
    step(vkml.ones(2))
    step.clear()
    assert step.recording_count == 0
    assert step(vkml.ones(2)).tolist() == [2.0, 2.0]


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


def test_a_frozen_parameter_keeps_its_gradient_over_recordings(device):
    p = vkml.ones(2, requires_grad=True)
    loss = (p * 3).sum()
    p.requires_grad_(False)
    scaled = vkml.jit(lambda x: x * p)
    assert scaled(vkml.ones(2) * 2).tolist() == [2, 2]
    p.requires_grad_(True)
    loss.backward()
    assert p.grad.tolist() == [3, 3]
