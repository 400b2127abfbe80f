"""What scripts for PyTorch do with modules and containers beside calling them."""

import numpy as np
import pytest

import vkml
from checking import exact, inputs
from torch_agreement import assert_agrees, torch
from vkml import nn


def names(module):
    return [type(each).__name__ for each in module]


def test_sequential_is_a_list_of_modules():
    model = nn.Sequential(nn.ReLU(), nn.Tanh())
    model.insert(1, nn.Sigmoid()).extend([nn.Identity()])
    assert names(model) == ["ReLU", "Sigmoid", "Tanh", "Identity"]
    assert list(model._modules) == ["0", "1", "2", "3"]
    assert isinstance(model.pop(1), nn.Sigmoid)
    del model[-1]
    assert names(model) == ["ReLU", "Tanh"]
    assert names(model + nn.Sequential(nn.GELU())) == ["ReLU", "Tanh", "GELU"]
    assert names(model * 2) == names(2 * model) == ["ReLU", "Tanh"] * 2
    model += nn.Sequential(nn.GELU())
    assert names(model) == ["ReLU", "Tanh", "GELU"]
    with pytest.raises(vkml.IndexError, match="index 7"):
        model.pop(7)
    with pytest.raises(vkml.ArgumentError, match="times 0"):
        model * 0
    with pytest.raises(TypeError):
        model + nn.ReLU()


def test_lists_and_dictionaries_give_modules_up():
    modules = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.GELU()])
    assert isinstance(modules.pop(0), nn.ReLU)
    assert names(modules) == ["Tanh", "GELU"]
    del modules[0]
    assert names(modules + nn.ModuleList([nn.Tanh()])) == ["GELU", "Tanh"]
    modules += [nn.ReLU()]
    assert list(modules._modules) == ["0", "1"]
    named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    assert isinstance(named.pop("a"), nn.ReLU)
    assert list(named) == ["b"]
    with pytest.raises(vkml.NamingError, match="has no 'a'"):
        named.pop("a")
    named.clear()
    assert len(named) == 0


def test_modules_can_come_once_for_each_name():
    shared = nn.ReLU()
    model = nn.Sequential(shared, shared)
    assert len(list(model.modules())) == 2
    assert len(list(model.modules(remove_duplicate=False))) == 3


def test_conversions_and_devices(device):
    model = nn.BatchNorm1d(3)
    assert model.type(vkml.float64) is model
    assert model.weight.dtype is vkml.float64
    assert model.share_memory() is model
    assert model.compile() is None
    parameter = model.weight
    model.to_empty(device=device)
    assert model.weight is parameter
    assert (model.weight.device, model.running_mean.device) == (device, device)
    assert tuple(model.weight.shape) == (3,)


class Scale(nn.Module):
    def forward(self, x, *, factor=1.0):
        if factor == 0:
            raise ValueError("no factor")
        return x * factor


def test_hooks_see_keywords_and_come_in_order():
    module = Scale()
    seen = []
    module.register_forward_pre_hook(lambda m, args: seen.append("pre"))
    module.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"factor": kwargs["factor"] + 1}),
        with_kwargs=True,
        prepend=True,
    )
    module.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    module.register_forward_hook(lambda m, args, out: out + 1, prepend=True)
    assert module(vkml.ones(1), factor=2.0).tolist() == [4.0]
    assert seen == ["pre", {"factor": 3.0}]


def test_hooks_that_are_always_called():
    module = Scale()
    seen = []
    module.register_forward_hook(lambda m, args, out: seen.append("plain"))
    module.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    with pytest.raises(ValueError, match="no factor"):
        module(vkml.ones(1), factor=0)
    assert seen == [None]


def test_a_hook_with_keywords_returns_both():
    module = Scale()
    module.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True)
    with pytest.raises(vkml.DTypeError, match=r"returns \(inputs, keywords\)"):
        module(vkml.ones(1))


def test_hooks_on_gradients_come_in_order():
    module, seen = nn.Linear(2, 1), []
    module.register_full_backward_hook(lambda *_: seen.append("second"))
    module.register_full_backward_hook(lambda *_: seen.append("first"), prepend=True)
    module(vkml.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == ["first", "second"]


def test_a_state_can_bring_its_dtype():
    model = nn.Linear(2, 1)
    parameter = model.weight
    state = {name: value.to(vkml.float64) for name, value in model.state_dict().items()}
    model.load_state_dict(state)
    assert model.weight.dtype is vkml.float32
    model.load_state_dict(state, assign=True)
    assert model.weight is parameter
    assert parameter.dtype is vkml.float64
    assert parameter.requires_grad
    state["weight"].fill_(7.0)
    assert 7.0 not in parameter.tolist()[0]


@pytest.mark.parametrize("layer", [lambda n: n.BatchNorm1d(3), lambda n: n.BatchNorm2d(3)])
def test_states_of_batch_norms_before_they_counted(layer):
    state = {k: v.numpy() for k, v in layer(torch.nn).state_dict().items()}
    del state["num_batches_tracked"]
    state["running_mean"] = state["running_mean"] + 2
    model = layer(nn)
    assert model.load_state_dict(state) == ([], [])
    assert model.running_mean.tolist() == [2, 2, 2]
    assert model.num_batches_tracked.item() == 0
    norm = nn.InstanceNorm1d(3, track_running_stats=True)
    norm.load_state_dict({k: v for k, v in state.items() if k.startswith("running")})


def compare(make, arrays, device, call):
    theirs, ours = make(torch.nn).double(), make(nn)
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.to(device)
    assert_agrees(lambda *a: call(ours, *a), lambda *a: call(theirs, *a), arrays, device, 256)
    for name, parameter in theirs.named_parameters():
        np.testing.assert_allclose(
            exact(dict(ours.named_parameters())[name].grad),
            parameter.grad.numpy(),
            rtol=1e-3,
            atol=1e-5,
        )


SEQUENCE = inputs((5, 2, 3), -1, 1)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("both", [False, True])
def test_lstm_with_a_projection(layers, both, device):
    compare(
        lambda n: n.LSTM(3, 4, layers, bidirectional=both, proj_size=2),
        [SEQUENCE],
        device,
        lambda layer, x: [
            y for part in layer(x) for y in (part if isinstance(part, tuple) else [part])
        ],
    )


def test_projections_that_cannot_be():
    with pytest.raises(vkml.ArgumentError, match="proj_size is 4"):
        nn.LSTM(3, 4, proj_size=4)
    assert "proj_size=2" in repr(nn.LSTM(3, 4, proj_size=2))


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_with_keys_of_its_own(biases, zeros, masked, device):
    mask = np.triu(np.ones((5, 5), bool), 1)

    def call(layer, x):
        library = torch if isinstance(x, torch.Tensor) else vkml
        hidden = library.tensor(mask) if library is torch else vkml.tensor(mask, device=device)
        return layer(x, x, x, attn_mask=hidden if masked else None)

    compare(
        lambda n: n.MultiheadAttention(4, 2, add_bias_kv=biases, add_zero_attn=zeros),
        [inputs((5, 2, 4), -1, 1)],
        device,
        call,
    )
