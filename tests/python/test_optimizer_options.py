"""Options, hooks and names of optimisers and schedules, compared with PyTorch."""

import collections

import numpy as np
import pytest

import vkml
from checking import exact, inputs
from torch_agreement import torch
from vkml import nn, optim
from vkml.optim import swa_utils

ARRAY = inputs((4,), -1, 1)
WITH_FLAGS = {
    "SGD": ("foreach", "fused"),
    "Adam": ("foreach", "fused", "capturable"),
    "AdamW": ("foreach", "fused", "capturable"),
    "Adagrad": ("foreach", "fused"),
    "Adadelta": ("foreach", "capturable"),
    "Adamax": ("foreach", "capturable"),
    "NAdam": ("foreach", "capturable"),
    "RMSprop": ("foreach", "capturable"),
}


def parameter(device):
    return nn.Parameter(vkml.tensor(ARRAY, device=device))


@pytest.mark.parametrize("name", WITH_FLAGS)
def test_flags_that_mean_nothing_here_change_nothing(name, device):
    kind = getattr(optim, name)
    plain, flagged = parameter(device), parameter(device)
    flags = dict.fromkeys(WITH_FLAGS[name], True)
    for tensor, optimizer in ((plain, kind([plain])), (flagged, kind([flagged], **flags))):
        (tensor**2).sum().backward()
        optimizer.step()
    np.testing.assert_array_equal(exact(plain), exact(flagged))
    with pytest.raises(vkml.ArgumentError, match=rf"\[{name}\] differentiable is True"):
        kind([plain], differentiable=True)


def test_adam_with_decoupled_decay_is_adamw(device):
    ours = parameter(device)
    theirs = torch.nn.Parameter(torch.tensor(ARRAY))
    for tensor, library in ((ours, optim), (theirs, torch.optim)):
        optimizer = library.Adam([tensor], 0.1, weight_decay=0.3, decoupled_weight_decay=True)
        for _ in range(3):
            optimizer.zero_grad()
            (tensor**2).sum().backward()
            optimizer.step()
    np.testing.assert_allclose(exact(ours), theirs.detach().numpy(), rtol=1e-5)


def test_what_an_operator_made_cannot_be_optimized(device):
    p = parameter(device)
    with pytest.raises(vkml.ArgumentError, match=r"\[SGD\] can't optimize a non-leaf Tensor"):
        optim.SGD([p * 2], lr=0.1)
    optim.SGD([(p * 2).detach()], lr=0.1)


def test_names_of_parameters_are_kept(device):
    model = nn.Linear(2, 1).to(device)
    optimizer = optim.SGD(model.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    saved = optimizer.state_dict()["param_groups"][0]
    assert (saved["params"], saved["param_names"]) == ([0, 1], ["weight", "bias"])
    with pytest.raises(vkml.ArgumentError, match="1 of 2 parameters have names"):
        optim.SGD([("weight", model.weight), model.bias])


@pytest.mark.parametrize("kind", [optim.SGD, optim.LBFGS])
def test_hooks_round_a_step(kind):
    p = parameter(vkml.cpu)
    optimizer = kind([p], lr=0.1)
    seen = []

    def loss():
        seen.append("closure")
        optimizer.zero_grad()
        value = (p**2).sum()
        value.backward()
        return value

    before = optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
    after = optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
    optimizer.step(loss)
    assert (seen[0], seen[1], seen[-1]) == ("before", "closure", "after")
    assert (seen.count("before"), seen.count("after")) == (1, 1)
    before.remove()
    after.remove()
    seen.clear()
    optimizer.step(loss)
    assert set(seen) == {"closure"}


def test_a_hook_replaces_the_arguments_of_a_step():
    p = parameter(vkml.cpu)
    optimizer = optim.SGD([p], lr=0.1)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((lambda: "other",), {}))
    assert optimizer.step() == "other"


def test_hooks_of_state_dicts():
    p = parameter(vkml.cpu)
    optimizer = optim.SGD([p], lr=0.1)
    seen = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("second"))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "epoch": 3})
    saved = optimizer.state_dict()
    assert seen == ["first", "second"]
    assert saved["epoch"] == 3
    optimizer.register_load_state_dict_pre_hook(
        lambda o, state: {**state, "param_groups": [{**state["param_groups"][0], "lr": 0.5}]}
    )
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert seen[-1] == "loaded"


# Schedules.


@pytest.mark.parametrize("least", [0.01, [0.05, 0.001]])
def test_lowest_rates_of_plateaus(least):
    rates = []
    for library, tensor in ((torch.optim, torch.ones(1)), (optim, vkml.ones(1))):
        groups = [{"params": [tensor.clone().requires_grad_()], "lr": r} for r in (0.1, 0.02)]
        optimizer = library.SGD(groups, lr=1.0)
        schedule = library.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=0.3, patience=0, min_lr=least
        )
        seen = []
        for metric in (1.0, 2.0, 3.0, 4.0, 5.0):
            schedule.step(metric)
            seen += [group["lr"] for group in optimizer.param_groups]
        rates.append(seen)
    np.testing.assert_allclose(rates[0], rates[1])


def test_lowest_rates_are_as_many_as_groups():
    optimizer = optim.SGD([parameter(vkml.cpu)], lr=0.1)
    with pytest.raises(vkml.ArgumentError, match="min_lr has 2 entries for 1"):
        optim.lr_scheduler.ReduceLROnPlateau(optimizer, min_lr=[0.1, 0.2])


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("three_phase", [False, True])
def test_one_cycle_in_three_phases(strategy, three_phase):
    seen = []
    for library, tensor in ((torch.optim, torch.ones(1)), (optim, vkml.ones(1))):
        optimizer = library.SGD([tensor.requires_grad_()], lr=0.1, momentum=0.9)
        schedule = library.lr_scheduler.OneCycleLR(
            optimizer, 1.0, 20, anneal_strategy=strategy, three_phase=three_phase
        )
        numbers = []
        for _ in range(19):
            numbers += [optimizer.param_groups[0][name] for name in ("lr", "momentum")]
            optimizer.step()
            schedule.step()
        seen.append(numbers)
    np.testing.assert_allclose(seen[0], seen[1], rtol=1e-12)


@pytest.mark.parametrize("kind", ["ema", "swa"])
def test_averages_of_all_weights_at_once(kind, device):
    single = getattr(swa_utils, f"get_{kind}_avg_fn")()
    together = getattr(swa_utils, f"get_{kind}_multi_avg_fn")()
    model = nn.Linear(3, 2).to(device)
    one = swa_utils.AveragedModel(model, avg_fn=single)
    all_at_once = swa_utils.AveragedModel(model, multi_avg_fn=together)
    for step in range(3):
        for average in (one, all_at_once):
            average.update_parameters(model)
        with vkml.no_grad():
            model.weight.add_(step + 1.0)
    np.testing.assert_array_equal(exact(one.module.weight), exact(all_at_once.module.weight))
    assert not np.array_equal(exact(one.module.weight), exact(model.weight))
    with pytest.raises(vkml.ArgumentError, match="both say how to average"):
        swa_utils.AveragedModel(model, avg_fn=single, multi_avg_fn=together)


# Data.

Pair = collections.namedtuple("Pair", ["a", "b"])


def test_batches_keep_the_types_of_their_items():
    batch = vkml.data.default_collate([Pair(1, 2.0), Pair(3, 4.0)])
    assert isinstance(batch, Pair)
    assert batch.a.tolist() == [1, 3]
    ordered = vkml.data.default_collate(
        [collections.OrderedDict(x=1), collections.OrderedDict(x=2)]
    )
    assert type(ordered) is collections.OrderedDict
    by_default = collections.defaultdict(list, x=1)
    assert vkml.data.default_collate([by_default])["missing"] == []
    assert type(vkml.data.default_collate([{"x": 1}])) is dict
    with pytest.raises(vkml.ArgumentError, match="the batch has no items"):
        vkml.data.default_collate([])


class Squares(vkml.data.Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, number):
        return np.array([number, number**2])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_without_batches_gives_items(workers):
    loader = vkml.data.DataLoader(Squares(), batch_size=None, num_workers=workers)
    assert len(loader) == 5
    items = list(loader)
    assert [item.tolist() for item in items] == [[i, i**2] for i in range(5)]
    assert all(isinstance(item, vkml.Tensor) for item in items)
    batches = [[0, 2], [4]]
    whole = vkml.data.DataLoader(
        vkml.data.TensorDataset(vkml.arange(5)), batch_size=None, sampler=batches
    )
    assert [columns[0].tolist() for columns in whole] == batches


class Stream(vkml.data.IterableDataset):
    def __iter__(self):
        return iter(range(3))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_without_batches(workers):
    loader = vkml.data.DataLoader(Stream(), batch_size=None, num_workers=workers, collate_fn=float)
    assert list(loader) == [0.0, 1.0, 2.0]


def test_loaders_take_pytorchs_other_arguments():
    data = Squares()
    assert len(vkml.data.DataLoader(data, multiprocessing_context="spawn", in_order=True)) == 5
    for wrong, text in (
        ({"batch_size": None, "drop_last": True}, "batch_size=None"),
        ({"multiprocessing_context": "fork"}, "workers are spawned"),
        ({"in_order": False}, "in_order=True"),
        ({"batch_size": 0}, "batch_size is 0"),
    ):
        with pytest.raises(vkml.ArgumentError, match=text):
            vkml.data.DataLoader(data, **wrong)
