"""Trajectories of optimisers, schedules and averages against PyTorch's, in double precision."""

import copy

import numpy as np
import pytest

import vkml
from checking import inputs
from vkml import nn, optim
from vkml.optim import lr_scheduler, swa_utils

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

STEPS = 20
SHAPES = [(3, 4), (5,), (), (2, 3, 1, 2)]
MATRICES = [(3, 5), (6, 2), (4, 4)]

# Name: class in both libraries, settings.
CASES = {
    "sgd": ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
    "sgd_damped": ("SGD", {"lr": 0.003, "momentum": 0.9, "dampening": 0.3, "maximize": True}),
    "adam": ("Adam", {"lr": 0.05, "weight_decay": 0.1, "amsgrad": True}),
    "adamw": ("AdamW", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}),
    "adamax": ("Adamax", {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1}),
    "adamax_up": ("Adamax", {"maximize": True}),
    "nadam": ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "momentum_decay": 0.01}),
    "nadam_decoupled": (
        "NAdam",
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ),
    "rmsprop": ("RMSprop", {"lr": 0.02, "weight_decay": 0.1, "eps": 1e-3}),
    "rmsprop_centered": (
        "RMSprop",
        {"lr": 0.01, "alpha": 0.9, "momentum": 0.8, "centered": True, "eps": 0.1, "maximize": True},
    ),
    "adagrad": ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
    "adagrad_up": ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
    "adadelta": ("Adadelta", {"lr": 0.7, "rho": 0.8, "weight_decay": 0.1}),
    "adadelta_up": ("Adadelta", {"eps": 1e-3, "maximize": True}),
}


def starts(shapes=SHAPES):
    return [inputs(shape, -1, 1, seed=i) for i, shape in enumerate(shapes)]


def loss_of(parameters, targets):
    """Smooth, not convex, and different in every element."""
    return sum(
        (((p - y) ** 2) * (1 + 0.3 * p)).sum() for p, y in zip(parameters, targets, strict=True)
    )


def pair(name, settings, device, shapes=SHAPES):
    """The same parameters and optimiser in both libraries, each with a function that steps once."""
    ours = [nn.Parameter(vkml.tensor(value, device=device)) for value in starts(shapes)]
    theirs = [torch.nn.Parameter(torch.tensor(v, dtype=torch.float64)) for v in starts(shapes)]
    targets = [inputs(shape, -1, 1, seed=50 + i) for i, shape in enumerate(shapes)]

    def stepper(optimizer, parameters, tensor):
        goals = [tensor(target) for target in targets]

        def step():
            optimizer.zero_grad()
            loss_of(parameters, goals).backward()
            optimizer.step()

        return step

    our_optimizer = getattr(optim, name)(ours, **settings)
    their_optimizer = getattr(torch.optim, name)(theirs, **settings)
    return (
        (
            our_optimizer,
            ours,
            stepper(our_optimizer, ours, lambda a: vkml.tensor(a, device=device)),
        ),
        (their_optimizer, theirs, stepper(their_optimizer, theirs, torch.tensor)),
    )


def assert_same(ours, theirs):
    for mine, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.numpy(), wanted.detach().numpy(), rtol=5e-5, atol=5e-6)


@pytest.mark.parametrize("case", CASES)
def test_trajectory_is_pytorchs(case, device):
    name, settings = CASES[case]
    (_, ours, our_step), (_, theirs, their_step) = pair(name, settings, device)
    for _ in range(STEPS):
        our_step()
        their_step()
    assert_same(ours, theirs)


@pytest.mark.parametrize("case", CASES)
def test_state_of_pytorch_continues_here(case, device):
    name, settings = CASES[case]
    (our_optimizer, ours, our_step), (their_optimizer, theirs, their_step) = pair(
        name, settings, device
    )
    for _ in range(5):
        their_step()
    for mine, other in zip(ours, theirs, strict=True):
        mine.data = vkml.tensor(other.detach().numpy(), dtype=vkml.float32, device=device)
    our_optimizer.load_state_dict(their_optimizer.state_dict())
    for key, entries in their_optimizer.state_dict()["state"].items():
        assert set(our_optimizer.state_dict()["state"][key]) == {
            entry for entry, value in entries.items() if value is not None
        } - ({"step"} if name == "SGD" else set())
    for _ in range(5):
        our_step()
        their_step()
    assert_same(ours, theirs)


@pytest.mark.parametrize("fn", ["original", "match_rms_adamw"])
def test_muon_agrees_with_pytorch_to_the_precision_of_its_bfloat16(fn, device):
    settings = {"lr": 0.01, "adjust_lr_fn": fn}
    (_, ours, our_step), (_, theirs, their_step) = pair("Muon", settings, device, MATRICES)
    for _ in range(STEPS):
        our_step()
        their_step()
    # Each of the steps moves elements by at most about lr, known to bfloat16's 2^-8 in five rounds.
    for mine, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            mine.numpy(), wanted.detach().numpy(), rtol=0, atol=STEPS * 0.01 * 2.0**-8 * 5
        )


@pytest.mark.parametrize(
    "settings",
    [
        {"lr": 0.2, "max_iter": 3},
        {"line_search_fn": "strong_wolfe", "max_iter": 4},
        {"line_search_fn": "strong_wolfe", "max_iter": 6, "history_size": 2},
    ],
)
def test_lbfgs_trajectory_is_pytorchs(settings, device):
    def closure_of(optimizer, p, scale):
        def closure():
            optimizer.zero_grad()
            a, b = p[0][1:], p[0][:-1]
            loss = (
                (((a - b * b) ** 2) * scale).sum() + ((1 - b) ** 2).sum() + ((p[1] - 1) ** 4).sum()
            )
            loss.backward()
            return loss

        return closure

    values = [inputs((6,), -1, 1), inputs((2, 2), -1, 1)]
    dtype = vkml.float64 if device.type == "cpu" else vkml.float32
    ours = [nn.Parameter(vkml.tensor(v, dtype=dtype, device=device)) for v in values]
    theirs = [torch.nn.Parameter(torch.tensor(v, dtype=torch.float64)) for v in values]
    our_optimizer = optim.LBFGS(ours, **settings)
    their_optimizer = torch.optim.LBFGS(theirs, **settings)
    our_closure = closure_of(our_optimizer, ours, 10.0)
    their_closure = closure_of(their_optimizer, theirs, 10.0)
    # A double follows for 20 steps; a float goes the same way until roundings are amplified.
    for _ in range(20 if dtype == vkml.float64 else 2):
        mine, wanted = our_optimizer.step(our_closure), their_optimizer.step(their_closure)
        tolerance = {"rtol": 1e-6, "atol": 1e-9} if dtype == vkml.float64 else {"rtol": 2e-3}
        np.testing.assert_allclose(mine.item(), wanted.item(), **tolerance)
    state = their_optimizer.state_dict()["state"][0]
    assert our_optimizer.state[ours[0]]["n_iter"] == state["n_iter"]
    if dtype == vkml.float64:
        assert our_optimizer.state[ours[0]]["func_evals"] == state["func_evals"]
    assert len(our_optimizer.state[ours[0]]["ro"]) == len(state["ro"])


def test_lbfgs_takes_over_pytorchs_state(device):
    def closure_of(optimizer, p):
        def closure():
            optimizer.zero_grad()
            loss = ((p - 2) ** 4).sum()
            loss.backward()
            return loss

        return closure

    start = inputs((5,), -1, 1)
    theirs = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    their_optimizer = torch.optim.LBFGS([theirs], lr=0.5, max_iter=3)
    their_optimizer.step(closure_of(their_optimizer, theirs))
    ours = nn.Parameter(vkml.tensor(theirs.detach().numpy(), dtype=vkml.float32, device=device))
    our_optimizer = optim.LBFGS([ours])
    our_optimizer.load_state_dict(their_optimizer.state_dict())
    for _ in range(2):
        their_optimizer.step(closure_of(their_optimizer, theirs))
        our_optimizer.step(closure_of(our_optimizer, ours))
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-4)


SCHEDULES = {
    "constant": lambda s, o: s.ConstantLR(o, 0.3, 4),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 7, 0.01),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 3, 5),
    "cyclic_halved": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 4, mode="triangular2"),
    "cyclic_exponential": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 4, mode="exp_range", gamma=0.9),
    "cyclic_function": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 4, scale_fn=lambda x: 1 / (x + 1)),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.8),
    "lambda": lambda s, o: s.LambdaLR(o, lambda t: 0.9**t),
    "linear": lambda s, o: s.LinearLR(o, 0.2, 0.9, 6),
    "multi_step": lambda s, o: s.MultiStepLR(o, [3, 8, 8], 0.5),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda t: 1 - 0.05 * t),
    "one_cycle": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=30, anneal_strategy="linear"),
    "polynomial": lambda s, o: s.PolynomialLR(o, 9, 2.0),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4, 2, 0.01),
    "step": lambda s, o: s.StepLR(o, 4, 0.3),
    "chained": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.StepLR(o, 5, 0.5)]
    ),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.StepLR(o, 2)], [4, 9]
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.filterwarnings("ignore:.*lr_scheduler.step:UserWarning")
def test_schedule_is_pytorchs(name):
    parameters = nn.Parameter(vkml.zeros(1)), nn.Parameter(vkml.zeros(1))
    others = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    groups = [[{"params": [a]}, {"params": [b], "lr": 0.3}] for a, b in (parameters, others)]
    ours = optim.SGD(groups[0], lr=0.1, momentum=0.9)
    theirs = torch.optim.SGD(groups[1], lr=0.1, momentum=0.9)
    our_schedule = SCHEDULES[name](lr_scheduler, ours)
    their_schedule = SCHEDULES[name](torch.optim.lr_scheduler, theirs)
    for _ in range(25):
        for mine, wanted in zip(ours.param_groups, theirs.param_groups, strict=True):
            assert mine["lr"] == pytest.approx(wanted["lr"], rel=1e-9, abs=1e-12)
            assert mine["momentum"] == pytest.approx(wanted["momentum"])
        assert our_schedule.get_last_lr() == [group["lr"] for group in ours.param_groups]
        our_schedule.step()
        theirs.step()
        their_schedule.step()


@pytest.mark.parametrize("epochs", [0, 5])
@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.filterwarnings("ignore:.*lr_scheduler.step:UserWarning")
def test_swa_rate_is_pytorchs(strategy, epochs):
    ours = optim.SGD([nn.Parameter(vkml.zeros(1))], lr=0.1)
    theirs = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    our_schedule = swa_utils.SWALR(ours, 0.03, epochs, strategy)
    their_schedule = torch.optim.swa_utils.SWALR(theirs, 0.03, epochs, strategy)
    for _ in range(8):
        assert ours.param_groups[0]["lr"] == pytest.approx(theirs.param_groups[0]["lr"])
        our_schedule.step()
        their_schedule.step()


def test_restarts_take_fractions_of_an_epoch():
    ours = optim.SGD([nn.Parameter(vkml.zeros(1))], lr=0.1)
    theirs = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    our_schedule = lr_scheduler.CosineAnnealingWarmRestarts(ours, 3, 2)
    their_schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(theirs, 3, 2)
    for epoch in (0.25, 2.9, 3.5, 8.0, 9.5, 22.0):
        our_schedule.step(epoch)
        their_schedule.step(epoch)
        assert ours.param_groups[0]["lr"] == pytest.approx(theirs.param_groups[0]["lr"])
        assert our_schedule.last_epoch == their_schedule.last_epoch


def models(device):
    ours = nn.Sequential(nn.Linear(3, 4, device=device), nn.BatchNorm1d(4, device=device))
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    theirs.load_state_dict(
        {name: torch.tensor(value.numpy()) for name, value in ours.state_dict().items()}
    )
    return ours, theirs


@pytest.mark.parametrize("kind", ["ema", "swa"])
@pytest.mark.parametrize("use_buffers", [False, True])
def test_averaged_model_is_pytorchs(kind, use_buffers, device):
    ours, theirs = models(device)
    library = torch.optim.swa_utils
    functions = {
        "ema": (swa_utils.get_ema_avg_fn(0.8), library.get_ema_avg_fn(0.8)),
        "swa": (swa_utils.get_swa_avg_fn(), library.get_swa_avg_fn()),
    }[kind]
    mine = swa_utils.AveragedModel(ours, avg_fn=functions[0], use_buffers=use_buffers)
    wanted = library.AveragedModel(theirs, avg_fn=functions[1], use_buffers=use_buffers)
    our_optimizer = optim.SGD(ours.parameters(), lr=0.1)
    their_optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    misses = []
    for step in range(6):
        x = inputs((8, 3), -1, 1, seed=step)
        our_optimizer.zero_grad()
        their_optimizer.zero_grad()
        ours(vkml.tensor(x, device=device)).sin().sum().backward()
        theirs(torch.tensor(x)).sin().sum().backward()
        our_optimizer.step()
        their_optimizer.step()
        mine.update_parameters(ours)
        wanted.update_parameters(theirs)
        misses.append(vkml.cache_info(device).misses)
    assert len(set(misses[2:])) == 1
    expected = wanted.state_dict()
    assert set(mine.state_dict()) == set(expected)
    # PyTorch averages the count of batches too, and rounds; here it is the model's.
    expected["module.1.num_batches_tracked"] = torch.tensor(6)
    for name, value in mine.state_dict().items():
        np.testing.assert_allclose(value.numpy(), expected[name].numpy(), rtol=1e-4, atol=1e-5)
    x = inputs((5, 3), -1, 1)
    mine.eval()
    wanted.eval()
    np.testing.assert_allclose(
        mine(vkml.tensor(x, device=device)).detach().numpy(),
        wanted(torch.tensor(x)).detach().numpy(),
        rtol=1e-4,
        atol=1e-4,
    )


def test_update_bn_is_pytorchs(device):
    ours, theirs = models(device)
    batches = [inputs((8, 3), -1, 1, seed=i) for i in range(3)]
    ours.eval()
    theirs.eval()
    swa_utils.update_bn([vkml.tensor(x) for x in batches], ours, device)
    torch.optim.swa_utils.update_bn([(torch.tensor(x),) for x in batches], theirs)
    for name, value in ours.state_dict().items():
        np.testing.assert_allclose(
            value.numpy(), theirs.state_dict()[name].numpy(), rtol=1e-4, atol=1e-6
        )
    assert not ours.training
    assert ours[1].momentum == 0.1


def test_averaged_copy_is_independent_and_saves(device):
    model = nn.Linear(2, 2, device=device)
    averaged = swa_utils.AveragedModel(model)
    before = copy.deepcopy(averaged.state_dict())
    with vkml.no_grad():
        model.weight.assign_(model.weight * 0)
    assert averaged.state_dict()["module.weight"].tolist() == before["module.weight"].tolist()
    again = swa_utils.AveragedModel(nn.Linear(2, 2, device=device))
    averaged.update_parameters(model)
    again.load_state_dict(averaged.state_dict())
    assert again.n_averaged.item() == 1
    assert again.module.weight.tolist() == [[0.0, 0.0], [0.0, 0.0]]
