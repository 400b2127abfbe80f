"""nn.Module: tables, state dicts, conversions, hooks, containers."""

import pytest

import vkml
from checking import inputs
from vkml import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.blocks = nn.ModuleList([nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)])
        self.blocks[1].weight = self.blocks[0].weight  # shared
        self.scale = nn.Parameter(vkml.ones(1))
        self.register_buffer("steps", vkml.zeros(1), persistent=False)

    def forward(self, x):
        x = self.norm(self.first(x))
        for block in self.blocks:
            x = block(x).relu()
        return x * self.scale


STATE_NAMES = [
    "scale",
    "first.weight",
    "first.bias",
    "norm.weight",
    "norm.bias",
    "norm.running_mean",
    "norm.running_var",
    "norm.num_batches_tracked",
    "blocks.0.weight",
    "blocks.1.weight",
]


def test_module_tables():
    net = Net()
    assert list(net.state_dict()) == STATE_NAMES
    assert [name for name, _ in net.named_parameters()] == [
        name
        for name in STATE_NAMES
        if name != "blocks.1.weight" and "running" not in name and "tracked" not in name
    ]
    assert len(list(net.parameters())) == 6
    assert {name for name, _ in net.named_buffers()} == {
        "steps",
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
    }
    assert [name for name, _ in net.named_children()] == ["first", "norm", "blocks"]
    assert [name for name, _ in net.named_modules()] == [
        "",
        "first",
        "norm",
        "blocks",
        "blocks.0",
        "blocks.1",
    ]
    assert net.get_submodule("blocks.1") is net.blocks[1]
    assert net.get_parameter("first.bias") is net.first.bias


def test_state_dict_goes_round_and_is_a_snapshot(device):
    net, other = Net(), Net()
    state = net.state_dict()
    before = {name: value.tolist() for name, value in state.items()}
    with vkml.no_grad():
        net.scale.assign_(net.scale + 1)
    assert state["scale"].tolist() == before["scale"]
    assert other.load_state_dict(state) == ([], [])
    assert {name: value.tolist() for name, value in other.state_dict().items()} == before


def test_load_state_dict_names_every_fault_and_writes_nothing():
    net = Net()
    state = net.state_dict()
    before = {name: value.tolist() for name, value in state.items()}
    bad = {name: value + 1 for name, value in state.items() if name != "norm.bias"}
    bad["first.weight"] = vkml.zeros((2, 2))
    bad["extra"] = vkml.zeros(1)
    with pytest.raises(vkml.ArgumentError) as caught:
        net.load_state_dict(bad)
    for fault in ("norm.bias", "extra", "first.weight: (2, 2)", "(4, 3)"):
        assert fault in str(caught.value)
    assert {name: value.tolist() for name, value in net.state_dict().items()} == before
    del bad["first.weight"]
    missing, unexpected = net.load_state_dict(bad, strict=False)
    assert (missing, unexpected) == (["norm.bias", "first.weight"][::-1], ["extra"])


def test_train_eval_requires_grad_and_zero_grad_reach_every_module(device):
    net = Net()
    assert all(module.training for module in net.modules())
    assert not any(module.training for module in net.eval().modules())
    net.train()
    net(vkml.tensor(inputs((5, 3), -1, 1), device=device)).sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())
    net.zero_grad()
    assert all(parameter.grad is None for parameter in net.parameters())
    net.requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in net.parameters())


def test_to_converts_in_place_and_keeps_parameters_and_sharing():
    net = Net()
    before = list(net.parameters())
    assert net.to(vkml.float16) is net
    assert all(a is b for a, b in zip(before, net.parameters(), strict=True))
    assert {parameter.dtype for parameter in net.parameters()} == {vkml.float16}
    assert net.norm.running_mean.dtype == vkml.float16
    assert net.state_dict()["norm.num_batches_tracked"].dtype == vkml.int64
    with pytest.raises(vkml.DTypeError):
        net.to(vkml.int32)


def test_hooks_see_and_replace():
    layer = nn.ReLU()
    seen = []
    with layer.register_forward_pre_hook(lambda module, args: seen.append(args) or (args[0] + 1,)):
        with layer.register_forward_hook(lambda module, args, result: result * 2):
            assert layer(vkml.tensor([-3.0, 1.0])).tolist() == [0.0, 4.0]
        assert layer(vkml.tensor([1.0])).tolist() == [2.0]
    assert layer(vkml.tensor([1.0])).tolist() == [1.0]
    assert len(seen) == 2


def test_attributes_are_filed_and_refused():
    net = nn.Module()
    net.weight = nn.Parameter(vkml.ones(2))
    with pytest.raises(TypeError, match="parameter 'weight'"):
        net.weight = vkml.ones(2)
    net.weight = None
    assert list(net.parameters()) == []
    net.child = nn.ReLU()
    net.child = nn.Tanh()
    assert isinstance(net.child, nn.Tanh)
    with pytest.raises(TypeError, match="child module"):
        net.child = 3
    del net.child
    with pytest.raises(AttributeError, match="child"):
        _ = net.child
    with pytest.raises(KeyError, match="already exists"):
        net.register_buffer("forward", None)

    class Early(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(vkml.ones(1))

    with pytest.raises(AttributeError, match="super"):
        Early()


def test_repr_shows_the_tree():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Dropout(0.5)))
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): ReLU()\n"
        "  (2): Sequential(\n"
        "    (0): Dropout(p=0.5, inplace=False)\n"
        "  )\n"
        ")"
    )


def test_containers():
    layers = [nn.Linear(1, 1), nn.ReLU(), nn.Tanh()]
    sequence = nn.Sequential(*layers)
    assert list(sequence) == layers
    assert sequence[-1] is layers[2]
    assert list(sequence[:2]) == layers[:2]
    sequence[1] = nn.Sigmoid()
    assert isinstance(sequence[1], nn.Sigmoid)
    with pytest.raises(IndexError):
        sequence[3]
    named = nn.Sequential({"a": layers[0], "b": layers[1]})
    assert list(named.state_dict()) == ["a.weight", "a.bias"]
    listed = nn.ModuleList(layers[:2])
    listed.insert(1, layers[2])
    assert list(listed) == [layers[0], layers[2], layers[1]]
    table = nn.ModuleDict({"x": layers[0]})
    table["y"] = layers[1]
    assert (list(table), len(table), "y" in table) == (["x", "y"], 2, True)
    parameters = nn.ParameterList([vkml.ones(2), vkml.zeros(3)])
    assert [tuple(p.shape) for p in parameters] == [(2,), (3,)]
    assert list(dict(parameters.named_parameters())) == ["0", "1"]
