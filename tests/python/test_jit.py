"""vkml.jit: the bits of the loop without it, state in place, recordings shared and dropped."""

import gc
import threading
import weakref

import numpy as np
import pytest

import vkml
from checking import inputs
from jit_loop import OPTIMIZERS, SCHEDULES, Loop, assert_same_bits
from vkml import _vkml, nn, optim


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


def test_a_frozen_parameter_keeps_its_gradient_over_recordings(device):
    p = vkml.ones(2, requires_grad=True)
    loss = (p * 3).sum()
    p.requires_grad_(False)
    scaled = vkml.jit(lambda x: x * p)
    assert scaled(vkml.ones(2) * 2).tolist() == [2, 2]
    p.requires_grad_(True)
    loss.backward()
    assert p.grad.tolist() == [3, 3]
