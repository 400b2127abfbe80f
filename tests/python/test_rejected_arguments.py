"""Arguments of wrong types and values: every exception is vkML's and a built-in one."""

import builtins
import inspect
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
