"""Optimisers against their published formulas in double precision, schedules by closed forms."""

import math

import numpy as np
import pytest

import vkml
from checking import inputs
from vkml import nn, optim
from vkml.optim import lr_scheduler

STEPS = 6

# Oracles: (parameter, gradient, step from 1, memory) -> new parameter. `memory` starts empty.


def sgd(lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    def step(p, g, t, memory):
        g = -g if maximize else g
        g = g + weight_decay * p
        if momentum:
            memory["b"] = g if t == 1 else momentum * memory["b"] + (1 - dampening) * g
            g = g + momentum * memory["b"] if nesterov else memory["b"]
        return p - lr * g

    return step


def adam(lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, decoupled=False):
    def step(p, g, t, memory):
        if decoupled:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = memory["m"] = betas[0] * memory.get("m", 0.0) + (1 - betas[0]) * g
        v = memory["v"] = betas[1] * memory.get("v", 0.0) + (1 - betas[1]) * g * g
        if amsgrad:
            v = memory["max"] = np.maximum(memory.get("max", 0.0), v)
        m, v = m / (1 - betas[0] ** t), v / (1 - betas[1] ** t)
        return p - lr * m / (np.sqrt(v) + eps)

    return step


def lion(lr, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
    def step(p, g, t, memory):
        g = -g if maximize else g
        m = memory.get("m", 0.0)
        move = np.sign(betas[0] * m + (1 - betas[0]) * g)
        memory["m"] = betas[1] * m + (1 - betas[1]) * g
        return p * (1 - lr * weight_decay) - lr * move

    return step


def muon(lr, weight_decay=0.1, momentum=0.95, nesterov=True):
    def step(p, g, t, memory):
        buffer = memory["b"] = momentum * memory.get("b", 0.0) + (1 - momentum) * g
        move = (1 - momentum) * g + momentum * buffer if nesterov else buffer
        # On the singular values the iteration is a scalar polynomial.
        u, values, vt = np.linalg.svd(move, full_matrices=False)
        values = values / np.linalg.norm(values)
        for _ in range(5):
            values = 3.4445 * values - 4.775 * values**3 + 2.0315 * values**5
        rate = lr * math.sqrt(max(1, p.shape[0] / p.shape[1]))
        return p * (1 - lr * weight_decay) - rate * (u * values) @ vt

    return step


CASES = {
    "sgd": (optim.SGD, sgd, {"lr": 0.1}),
    "sgd_momentum": (optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "dampening": 0.2}),
    "sgd_nesterov": (optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "sgd_decay": (optim.SGD, sgd, {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    "adam": (optim.Adam, adam, {"lr": 0.1}),
    "adam_decay": (optim.Adam, adam, {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1}),
    "adam_amsgrad": (optim.Adam, adam, {"lr": 0.1, "betas": (0.5, 0.5), "amsgrad": True}),
    "adamw": (optim.AdamW, adam, {"lr": 0.1, "weight_decay": 0.1, "decoupled": True}),
    "lion": (optim.Lion, lion, {"lr": 0.1}),
    "lion_decay": (optim.Lion, lion, {"lr": 0.1, "weight_decay": 0.2, "maximize": True}),
    "muon": (optim.Muon, muon, {"lr": 0.1}),
    "muon_plain": (optim.Muon, muon, {"lr": 0.1, "momentum": 0.5, "nesterov": False}),
}
MATRICES_ONLY = (optim.Muon,)

# Optimisers whose formulas test_optim_against_torch.py checks.
OTHERS = {
    "adadelta": (optim.Adadelta, {}),
    "adagrad": (optim.Adagrad, {"lr_decay": 0.1}),
    "adamax": (optim.Adamax, {}),
    "nadam": (optim.NAdam, {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    "rmsprop": (optim.RMSprop, {"momentum": 0.9, "centered": True}),
}


def settings_of(name):
    """Class and arguments, without what only the oracle takes."""
    if name in OTHERS:
        return OTHERS[name]
    kind, _, settings = CASES[name]
    return kind, {key: value for key, value in settings.items() if key != "decoupled"}


@pytest.mark.parametrize("name", CASES)
def test_optimizer_follows_its_formula(name, device):
    _, formula, settings = CASES[name]
    oracle = formula(**settings)
    kind, settings = settings_of(name)
    shapes = [(3, 4), (5, 2)] if kind in MATRICES_ONLY else [(3, 4), (5,)]
    start = [inputs(shape, -1, 1) for shape in shapes]
    targets = [inputs(value.shape, -1, 1, seed=5) for value in start]
    parameters = [nn.Parameter(vkml.tensor(value, device=device)) for value in start]
    optimizer = kind(parameters, **settings)
    exact = [value.astype(np.float64) for value in start]
    memories = [{} for _ in start]
    for t in range(1, STEPS + 1):
        optimizer.zero_grad()
        loss = sum(
            (((p - vkml.tensor(y, device=device)) ** 2) * p).sum()
            for p, y in zip(parameters, targets, strict=True)
        )
        loss.backward()
        optimizer.step()
        for i, (p, y) in enumerate(zip(list(exact), targets, strict=True)):
            gradient = 2 * (p - y) * p + (p - y) ** 2
            exact[i] = oracle(p, gradient, t, memories[i])
    for parameter, value in zip(parameters, exact, strict=True):
        np.testing.assert_allclose(parameter.numpy(), value, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["sgd_momentum", "adam", "lion", "muon", *OTHERS])
def test_optimizer_state_goes_round(name, device):
    kind, settings = settings_of(name)

    def train(steps, parameter, optimizer):
        for _ in range(steps):
            optimizer.zero_grad()
            ((parameter - 3) ** 2).sum().backward()
            optimizer.step()

    whole = nn.Parameter(vkml.zeros((3, 1), device=device))
    train(6, whole, kind([whole], **settings))

    first = nn.Parameter(vkml.zeros((3, 1), device=device))
    optimizer = kind([first], **settings)
    train(2, first, optimizer)
    second = nn.Parameter(first.detach())
    resumed = kind([second], lr=99.0)
    resumed.load_state_dict(optimizer.state_dict())
    assert resumed.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
    train(4, second, resumed)
    assert second.tolist() == whole.tolist()


def test_load_state_dict_refuses_other_groups():
    one, two = nn.Parameter(vkml.zeros(1)), nn.Parameter(vkml.zeros(1))
    state = optim.SGD([one, two], lr=0.1).state_dict()
    with pytest.raises(vkml.ArgumentError, match=r"\[2\].*\[1\]"):
        optim.SGD([one], lr=0.1).load_state_dict(state)


def test_groups_have_their_own_settings(device):
    fast = nn.Parameter(vkml.zeros(1, device=device))
    slow = nn.Parameter(vkml.zeros(1, device=device))
    unused = nn.Parameter(vkml.ones(1, device=device))
    optimizer = optim.SGD([{"params": fast, "lr": 1.0}, {"params": [slow, unused]}], lr=0.5)
    (fast + slow).sum().backward()
    optimizer.step()
    assert (fast.item(), slow.item(), unused.item()) == (-1.0, -0.5, 1.0)


def test_closure_is_evaluated_with_gradients(device):
    parameter = nn.Parameter(vkml.ones(1, device=device))
    optimizer = optim.SGD([parameter], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (parameter * 3).sum()
        loss.backward()
        return loss

    with vkml.no_grad():
        assert optimizer.step(closure).item() == 3.0
    assert parameter.item() == -0.5


@pytest.mark.parametrize(
    "build",
    [
        lambda p: optim.SGD([p], lr=-1.0),
        lambda p: optim.SGD([p], lr=0.1, nesterov=True),
        lambda p: optim.Adam([p], betas=(0.9, 1.0)),
        lambda p: optim.AdamW([p], weight_decay=-0.1),
        lambda p: optim.Adadelta([p], rho=1.5),
        lambda p: optim.Adagrad([p], lr_decay=-1.0),
        lambda p: optim.Adamax([p], eps=-1.0),
        lambda p: optim.LBFGS([p], line_search_fn="armijo"),
        lambda p: optim.LBFGS([{"params": [p]}, {"params": [nn.Parameter(vkml.ones(1))]}]),
        lambda p: optim.LBFGS([p]).step(),
        lambda p: optim.Lion([p], betas=(1.0, 0.9)),
        lambda p: optim.NAdam([p], momentum_decay=-1.0),
        lambda p: optim.RMSprop([p], alpha=-0.1),
        lambda p: optim.Muon([nn.Parameter(vkml.ones((1, 1)))], adjust_lr_fn="none"),
        lambda p: optim.SGD([], lr=0.1),
        lambda p: optim.SGD([p, p], lr=0.1),
    ],
)
def test_impossible_settings_are_refused(build):
    with pytest.raises(vkml.ArgumentError):
        build(nn.Parameter(vkml.zeros(1)))


def test_muon_takes_matrices_only():
    with pytest.raises(vkml.ShapeError, match=r"\(3,\).*AdamW"):
        optim.Muon([nn.Parameter(vkml.zeros(3))])


def test_lbfgs_compiles_nothing_as_its_history_grows(device):
    parameter = nn.Parameter(vkml.tensor(inputs((8,), -1, 1), device=device))
    optimizer = optim.LBFGS([parameter], lr=0.3, max_iter=1, tolerance_change=0.0)
    misses = []

    def closure():
        optimizer.zero_grad()
        loss = ((parameter - 2) ** 4).sum()
        loss.backward()
        return loss

    for _ in range(8):
        optimizer.step(closure)
        misses.append(vkml.cache_info(device).misses)
    assert len(optimizer.state[parameter]["ro"]) == 7
    assert len(set(misses[3:])) == 1


def test_parameters_must_be_tensors_in_an_iterable():
    with pytest.raises(TypeError, match="iterable"):
        optim.SGD(vkml.zeros(1), lr=0.1)
    with pytest.raises(TypeError, match="str"):
        optim.SGD(["weight"], lr=0.1)


# Schedules.


def cosine(t, length, low=0.0, high=0.1):
    return low + (high - low) * (1 + math.cos(math.pi * t / length)) / 2


def one_cycle(t):
    """max_lr 1, 11 steps, 0.3 of them up, as Smith's two half cosines."""
    top = 0.3 * 11 - 1
    if t <= top:
        return cosine(top - t, top, 0.04, 1.0)
    return cosine(t - top, 10 - top, 0.04 / 1e4, 1.0)


SCHEDULES = {
    "lambda": (lambda o: lr_scheduler.LambdaLR(o, lambda t: 1 / (t + 1)), lambda t: 0.1 / (t + 1)),
    "step": (lambda o: lr_scheduler.StepLR(o, 3, 0.5), lambda t: 0.1 * 0.5 ** (t // 3)),
    "multi_step": (
        lambda o: lr_scheduler.MultiStepLR(o, [2, 5, 5], 0.5),
        lambda t: 0.1 * (1 if t < 2 else 0.5 if t < 5 else 0.125),
    ),
    "exponential": (lambda o: lr_scheduler.ExponentialLR(o, 0.8), lambda t: 0.1 * 0.8**t),
    "linear": (
        lambda o: lr_scheduler.LinearLR(o, 0.25, 1.0, 4),
        lambda t: 0.1 * (0.25 + 0.75 * min(t, 4) / 4),
    ),
    "cosine": (
        lambda o: lr_scheduler.CosineAnnealingLR(o, 4, eta_min=0.01),
        lambda t: cosine(t, 4, 0.01),
    ),
    "one_cycle": (lambda o: lr_scheduler.OneCycleLR(o, 1.0, total_steps=11), one_cycle),
    "sequential": (
        lambda o: lr_scheduler.SequentialLR(
            o,
            [lr_scheduler.LinearLR(o, 0.5, 1.0, 2), lr_scheduler.ExponentialLR(o, 0.5)],
            [4],
        ),
        lambda t: 0.1 * (min(0.5 + 0.25 * t, 1) if t < 4 else 0.5 ** (t - 4)),
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_follows_its_closed_form(name):
    build, expected = SCHEDULES[name]
    optimizer = optim.SGD([nn.Parameter(vkml.zeros(1))], lr=0.1, momentum=0.9)
    schedule = build(optimizer)
    for t in range(10):
        assert optimizer.param_groups[0]["lr"] == pytest.approx(expected(t), rel=1e-9, abs=1e-15)
        assert schedule.get_last_lr() == [optimizer.param_groups[0]["lr"]]
        optimizer.step()
        schedule.step()


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_state_goes_round(name):
    build, _ = SCHEDULES[name]
    optimizers = [optim.SGD([nn.Parameter(vkml.zeros(1))], lr=0.1, momentum=0.9) for _ in "ab"]
    first, second = (build(optimizer) for optimizer in optimizers)
    for _ in range(3):
        first.step()
    second.load_state_dict(first.state_dict())
    optimizers[1].load_state_dict(optimizers[0].state_dict())
    for _ in range(4):
        first.step()
        second.step()
        assert second.get_last_lr() == first.get_last_lr()


def test_one_cycle_moves_momentum_the_other_way_and_ends():
    optimizer = optim.Adam([nn.Parameter(vkml.zeros(1))], betas=(0.9, 0.99))
    schedule = lr_scheduler.OneCycleLR(optimizer, 1.0, epochs=5, steps_per_epoch=2)
    momenta = []
    for _ in range(10):
        momenta.append(optimizer.param_groups[0]["betas"][0])
        schedule.step()
    assert momenta[0] == pytest.approx(0.95)
    assert min(momenta) == pytest.approx(0.85)
    assert momenta[-1] == pytest.approx(0.95)
    assert optimizer.param_groups[0]["betas"][1] == 0.99
    with pytest.raises(vkml.ArgumentError, match="total_steps"):
        schedule.step()


def test_plateau_reduces_after_patience_and_not_below_the_minimum():
    optimizer = optim.SGD([nn.Parameter(vkml.zeros(1))], lr=1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.1, patience=1, cooldown=1, min_lr=0.05
    )
    rates = []
    for metric in [1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]:
        schedule.step(metric)
        rates.append(optimizer.param_groups[0]["lr"])
    # Bad at the 3rd and 4th step: reduced; the 5th cools down; bad at the 6th and 7th: reduced.
    assert rates == pytest.approx([1, 1, 1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05])


def test_plateau_by_maximum_and_absolute_threshold():
    optimizer = optim.SGD([nn.Parameter(vkml.zeros(1))], lr=1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(
        optimizer, "max", patience=0, threshold=0.1, threshold_mode="abs"
    )
    schedule.step(0.5)
    schedule.step(vkml.tensor(0.65))
    assert optimizer.param_groups[0]["lr"] == 1.0
    schedule.step(0.7)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1)


def test_two_schedules_work_on_one_optimizer():
    optimizer = optim.SGD([nn.Parameter(vkml.zeros(1))], lr=1.0)
    schedules = [
        lr_scheduler.ExponentialLR(optimizer, 0.5),
        lr_scheduler.StepLR(optimizer, 2, 0.1),
    ]
    for _ in range(2):
        for schedule in schedules:
            schedule.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.25 * 0.1)


@pytest.mark.parametrize("name", [*CASES, *OTHERS])
def test_steps_schedules_and_sliding_batches_compile_nothing_new(name, device):
    kind, settings = settings_of(name)
    x = vkml.tensor(inputs((64, 3), -1, 1), device=device)
    model = nn.Linear(3, 2, bias=kind not in MATRICES_ONLY, device=device)
    optimizer = kind(model.parameters(), **settings)
    schedule = lr_scheduler.CosineAnnealingLR(optimizer, 20)
    misses = []
    for step in range(8):
        optimizer.zero_grad()
        (model(x[8 * step : 8 * step + 8]) ** 2).mean().backward()
        optimizer.step()
        schedule.step()
        misses.append(vkml.cache_info(device).misses)
    assert len(set(misses[1:])) == 1
