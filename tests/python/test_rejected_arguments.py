"""Arguments of wrong types and values: every exception is vkML's and a built-in one."""

import builtins
import inspect
import re
import types

import numpy as np
import pytest

import vkml
from vkml import array_api, autograd, data, func, graph, linalg, nn, optim, special, utils

MODULES = {
    "vkml": vkml,
    "array_api": array_api,
    "array_api.linalg": array_api.linalg,
    "autograd": autograd,
    "data": data,
    "func": func,
    "graph": graph,
    "linalg": linalg,
    "nn": nn,
    "nn.functional": nn.functional,
    "nn.init": nn.init,
    "nn.utils": nn.utils,
    "nn.utils.rnn": nn.utils.rnn,
    "optim": optim,
    "optim.lr_scheduler": optim.lr_scheduler,
    "optim.swa_utils": optim.swa_utils,
    "special": special,
    "utils.checkpoint": types.SimpleNamespace(checkpoint=utils.checkpoint.checkpoint),
}
WRONG = ("a", None, 3)
# What takes the whole process down to another state, for later tests.
STATEFUL = {"set_eager", "set_default_device", "set_depth_limit", "set_coverage"}


def is_ours(value):
    return getattr(value, "__module__", "").partition(".")[0] == "vkml"


def is_made_by_vkml_alone(value):
    """Whether it is a native class without a constructor, which Python itself refuses to call."""
    is_native = isinstance(value, type) and value.__module__ == "vkml._vkml"
    return is_native and type(vars(value).get("__init__")) is not type(vkml.Tensor.realize)


def public(owner):
    """The functions and classes of a module, or the methods of a class."""
    found = {
        name: getattr(owner, name)
        for name in dir(owner)
        if not name.startswith("_") and name not in STATEFUL
    }
    return {
        name: value
        for name, value in found.items()
        if callable(value)
        and is_ours(value)
        and not isinstance(value, types.ModuleType)
        and not (isinstance(value, type) and issubclass(value, BaseException))
        and not is_made_by_vkml_alone(value)
    }


def calls(*first):
    """Arguments with something wrong among them."""
    for wrong in WRONG:
        yield (*first, wrong)
        yield (*first, wrong, wrong)
        yield (*first, wrong, wrong, wrong)
        yield (*first, vkml.ones(2, 2), wrong)
        yield (*first, vkml.ones(2, 2), wrong, wrong)


def takes(function, arguments):
    """False where the number of arguments is wrong: that error is Python's own."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # a native function, which has no signature
        return True
    return True


def faults(function, every):
    """Calls that raised something that is not vkML's."""
    for arguments in every:
        if not takes(function, arguments):
            continue
        try:
            function(*arguments)
        except vkml.VkmlError as error:
            if not str(error):
                yield arguments, error
        except Exception as error:
            yield arguments, error


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch, tmp_path):
    """`save(tensor, "a")` is no mistake: it writes a file."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", MODULES)
def test_every_function_rejects_with_an_exception_of_vkml(name):
    found = {
        function_name: list(faults(function, calls()))
        for function_name, function in public(MODULES[name]).items()
    }
    assert found
    assert {n: bad for n, bad in found.items() if bad} == {}


def test_every_method_rejects_with_an_exception_of_vkml():
    methods = public(vkml.Tensor)
    assert len(methods) > 300
    found = {
        name: list(faults(lambda x, *rest, m=method: m(x, *rest), calls(vkml.ones(2, 2))))
        for name, method in methods.items()
    }
    assert {n: bad for n, bad in found.items() if bad} == {}


# Function, exception, what its text says.
REJECTED = {
    "grad": (lambda x: vkml.grad(x.sum(), 3), vkml.DTypeError, r"\[grad\] .*3"),
    "array of strings": (
        lambda x: vkml.tensor(np.array(["a"])),
        vkml.VkmlError,
        r"\[tensor\] ",
    ),
    "slice": (lambda x: x["a":], vkml.VkmlError, r"\[getitem\] |\[__getitem__\] "),
    "matmul": (
        lambda x: vkml.matmul(x, 3),
        vkml.DTypeError,
        r"\[matmul\] does not take \(Tensor, 3",
    ),
    "keyword": (
        lambda x: vkml.matmul(x, other="a"),
        vkml.DTypeError,
        r"\[matmul\] does not take \(Tensor, other='a'\). It takes:\n.*matmul\(input: Tensor",
    ),
    "method": (lambda x: x.assign_(3), vkml.DTypeError, r"\[assign_\] does not take \(Tensor, 3\)"),
    "list": (lambda x: vkml.cat([x, 3]), vkml.DTypeError, r"\[cat\] does not take \(list\)"),
    "realize": (lambda x: vkml.realize(3), vkml.DTypeError, r"\[realize\] "),
    "seed": (lambda x: vkml.manual_seed("a"), vkml.DTypeError, r"\[manual_seed\] .*'a'"),
    "property": (
        lambda x: setattr(x, "requires_grad", "a"),
        vkml.DTypeError,
        "requires_grad|'a'",
    ),
    "constructor": (lambda x: vkml.Tensor("a"), vkml.DTypeError, r"\[Tensor\] .*\('a'\)"),
    "no argument": (lambda x: vkml.relu(), vkml.DTypeError, r"\[relu\] does not take \(\)"),
    "load": (lambda x: vkml.load(None), vkml.DTypeError, r"\[load\] the path is None"),
    "optimizer": (lambda x: optim.SGD(["x"]), vkml.DTypeError, r"\[SGD\] .*'x'"),
    "optimizer's number": (
        lambda x: optim.Adam([x], lr="a"),
        vkml.DTypeError,
        r"\[Adam\] .*'a'",
    ),
    "position": (lambda x: nn.Sequential()[3], vkml.IndexError, r"\[Sequential\] index 3"),
    "position's type": (lambda x: nn.ModuleList()["a"], vkml.DTypeError, r"\[ModuleList\] .*'a'"),
    "name": (lambda x: nn.ParameterDict()["a"], vkml.NamingError, r"^\[ParameterDict\] has no 'a'"),
    "module": (lambda x: nn.Linear("a", 3), vkml.VkmlError, "'a'"),
    "attribute": (lambda x: nn.ReLU().weight, vkml.MissingAttributeError, "'weight'"),
    "function": (lambda x: nn.functional.mse_loss("a", x), vkml.DTypeError, r"\[mse_loss\] .*'a'"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_the_text_names_function_and_value(name):
    call, kind, text = REJECTED[name]
    with pytest.raises(kind, match=text) as caught:
        call(vkml.ones(2, 2))
    assert isinstance(caught.value, vkml.VkmlError)


def sgd():
    return optim.SGD([nn.Parameter(vkml.ones(2))], lr=0.1)


# Errors of code that serves many functions, which name the one that was called. What is called,
# the exception, the text.
NAMED = {
    "zeros": (lambda: vkml.zeros(1, 1, 1, 1, 1), vkml.ShapeError, r"\[zeros\] rank 5 exceeds"),
    "ones": (lambda: vkml.ones(1, 1, 1, 1, 1), vkml.ShapeError, r"\[ones\] rank 5 exceeds"),
    "empty": (
        lambda: vkml.empty(2, -1),
        vkml.ShapeError,
        r"\[empty\] negative extent in \(2",
    ),
    "full": (lambda: vkml.full((-1,), 2), vkml.ShapeError, r"\[full\] negative extent"),
    "rand": (lambda: vkml.rand(-1), vkml.ShapeError, r"\[rand\] negative extent"),
    "randn": (lambda: vkml.randn(-1), vkml.ShapeError, r"\[randn\] negative extent"),
    "randint": (lambda: vkml.randint(0, 3, (-1,)), vkml.ShapeError, r"\[randint\] negative extent"),
    "normal": (lambda: vkml.normal(0.0, 1.0, (-1,)), vkml.ShapeError, r"\[normal\] negative"),
    "bytes": (lambda: vkml.zeros(1 << 40, 1 << 40), vkml.ShapeError, r"\[zeros\] shape .* 2\^63"),
    "repeat": (lambda: vkml.ones(3).repeat(1 << 61), vkml.ShapeError, r"\[repeat\] shape .* 2\^63"),
    "setitem": (
        lambda: vkml.zeros(4, 3).__setitem__(slice(0, 2), vkml.ones(5)),
        vkml.ShapeError,
        r"\[setitem\] shape \(5,\) does not broadcast to \(2, 3\)",
    ),
    "copy_": (
        lambda: vkml.zeros(4, 3).copy_(vkml.ones(5)),
        vkml.ShapeError,
        r"\[copy_\] shape \(5,\)",
    ),
    "dtype": (
        lambda: vkml.ones(3, dtype="x"),
        vkml.DTypeError,
        r"\[ones\] 'x' is not a vkml",
    ),
    "device": (lambda: vkml.rand(3, device=3), vkml.DeviceError, r"\[rand\] 3 is not a device"),
    "grad": (
        lambda: setattr(vkml.ones(3), "grad", 3),
        vkml.DTypeError,
        r"\[grad\] does not take \(3\)",
    ),
    "data": (
        lambda: setattr(vkml.ones(3), "data", 3),
        vkml.DTypeError,
        r"\[data\] does not take \(3\)",
    ),
    "truth": (lambda: bool(vkml.ones(2)), vkml.ArgumentError, r"\[bool\] the truth value"),
    "len": (lambda: len(vkml.tensor(1)), vkml.DTypeError, r"\[len\] a tensor of rank 0"),
    "iter": (lambda: list(vkml.tensor(1)), vkml.DTypeError, r"\[iter\] a tensor of rank 0"),
    "depth": (
        lambda: vkml.set_depth_limit(-1),
        vkml.ArgumentError,
        r"\[set_depth_limit\] -1 is outside",
    ),
    "large depth": (
        lambda: vkml.set_depth_limit(1 << 40),
        vkml.ArgumentError,
        r"\[set_depth_limit\] 1099511627776 is outside",
    ),
    "Linear": (
        lambda: nn.Linear(-3, 4),
        vkml.ShapeError,
        r"\[Linear\] does not take \(-3, 4\): .*negative extent",
    ),
    "Linear's type": (
        lambda: nn.Linear(3.5, 2),
        vkml.ArgumentError,
        r"\[Linear\] does not take \(3.5, 2\): .*3.5 is not an integer.*Linear\(in_features: int",
    ),
    "LayerNorm": (
        lambda: nn.LayerNorm("a"),
        vkml.ArgumentError,
        r"\[LayerNorm\] does not take \('a'\)",
    ),
    "Transformer": (
        lambda: nn.Transformer(3, 2, 1, 1, 4),
        vkml.ArgumentError,
        r"\[Transformer\] does not take \(3, 2, 1, 1, 4\): .*embed_dim=3 does not divide",
    ),
    "module": (lambda: nn.Flatten()("a"), vkml.DTypeError, r"\[Flatten\] does not take \('a'\)"),
    "StepLR": (
        lambda: optim.lr_scheduler.StepLR(3, 1),
        vkml.DTypeError,
        r"\[StepLR\] does not take \(3, 1\).*StepLR\(optimizer: Optimizer, step_size: int",
    ),
    "step_size": (
        lambda: optim.lr_scheduler.StepLR(sgd(), 0),
        vkml.ArgumentError,
        r"\[StepLR\] step_size is 0",
    ),
    "T_max": (
        lambda: optim.lr_scheduler.CosineAnnealingLR(sgd(), 0),
        vkml.ArgumentError,
        r"\[CosineAnnealingLR\] T_max is 0",
    ),
    "closure": (lambda: sgd().step(3), vkml.DTypeError, r"\[SGD\] the closure is 3"),
    "DataLoader": (
        lambda: data.DataLoader(3),
        vkml.DTypeError,
        r"\[DataLoader\] int is no",
    ),
    "collate": (
        lambda: data.default_collate([np.ones(3), np.ones((2, 4))]),
        vkml.ShapeError,
        r"\[default_collate\] item 0 .* shape \(3,\), item 1 \(2, 4\)\. .*collate_fn",
    ),
    "Subset": (lambda: data.Subset([1], [4])[0], vkml.IndexError, r"\[Subset\] item 4 .* 1 items"),
    "Subset's item": (lambda: data.Subset([1], [0])[3], vkml.IndexError, r"\[Subset\] index 3"),
    "sampler": (
        lambda: list(data.DataLoader([1, 2], sampler=[5])),
        vkml.IndexError,
        r"\[DataLoader\] item 5 .* 2 items",
    ),
}
# Texts that say what to do instead.
REMEDIES = {
    "neg": (lambda: -vkml.tensor([True]), vkml.DTypeError, r"\[neg\].*logical operator"),
    "add": (
        lambda: vkml.ones(3) + vkml.ones(4),
        vkml.ShapeError,
        r"\[add\].*equal, or one",
    ),
    "reshape": (lambda: vkml.ones(6).reshape(4), vkml.ShapeError, r"\[reshape\].*product is 6"),
    "axis": (lambda: vkml.ones(2, 2).sum(dim=5), vkml.ShapeError, r"\[sum\].*Use -2 to 1"),
    "assign_": (
        lambda: vkml.ones(3).assign_(vkml.ones(1)),
        vkml.ShapeError,
        r"\[assign_\].*copy_\(value\), which broadcasts",
    ),
}


@pytest.mark.parametrize("name", [*NAMED, *REMEDIES])
def test_the_text_begins_with_what_was_called(name):
    call, kind, text = (NAMED | REMEDIES)[name]
    with pytest.raises(vkml.VkmlError) as caught:
        call()
    assert type(caught.value) is kind
    assert re.match(text, str(caught.value)), str(caught.value)


def test_exceptions_of_a_dataset_pass_through():
    class Mine(data.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return [][index]

    for read in (lambda: data.Subset(Mine(), [0])[0], lambda: list(data.DataLoader(Mine()))):
        with pytest.raises(builtins.IndexError) as caught:
            read()
        assert type(caught.value) is builtins.IndexError


def test_errors_of_a_constructor_of_the_users_pass_through():
    class Mine(nn.Module):
        def __init__(self):
            super().__init__()
            self.width = len(3)

    with pytest.raises(builtins.TypeError) as caught:
        Mine()
    assert type(caught.value) is builtins.TypeError


def test_a_derived_class_of_the_users_is_refused_in_the_name_of_ours():
    class Mine(nn.Linear):
        pass

    class Other(nn.Linear):
        def __init__(self):
            super().__init__("a", 2)

    for make in (lambda: Mine("a", 2), Other):
        with pytest.raises(vkml.VkmlError, match=r"^\[Linear\] does not take \('a', 2\)"):
            make()


def test_exceptions_of_a_users_function_pass_through():
    class Broken(nn.Module):
        def forward(self, x):
            return len(3)

    def broken(x):
        return x + {}.missing

    with pytest.raises(builtins.TypeError) as caught:
        nn.Sequential(Broken())(vkml.ones(1))
    assert type(caught.value) is builtins.TypeError
    with pytest.raises(builtins.AttributeError) as caught:
        func.vjp(broken, vkml.ones(1))
    assert type(caught.value) is builtins.AttributeError
    with pytest.raises(builtins.AttributeError) as caught:
        vkml.jit(broken)(vkml.ones(1))
    assert type(caught.value) is builtins.AttributeError
    x = vkml.ones(1, requires_grad=True)
    x.register_hook(broken)
    with pytest.raises(builtins.AttributeError) as caught:
        (x * 2).backward()
    assert type(caught.value) is builtins.AttributeError


def test_every_exception_is_a_built_in_one_too():
    kinds = [value for value in vars(vkml).values() if isinstance(value, type)]
    ours = [
        kind for kind in kinds if issubclass(kind, vkml.VkmlError) and kind is not vkml.VkmlError
    ]
    assert len(ours) >= 14
    for kind in ours:
        others = [base for base in kind.__mro__ if base.__module__ == "builtins"]
        assert others[0] not in (Exception, BaseException, object), kind
        assert str(kind("[x] y 'z'")) in ("[x] y 'z'", repr("[x] y 'z'"))
