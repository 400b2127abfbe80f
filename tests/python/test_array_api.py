"""vkml.array_api against array-api-strict: names, signatures, dtypes, values of each function."""

import ast
import inspect
import itertools
import re

import numpy as np
import pytest

import vkml
from array_api_reference import DTYPES, dtype_name, strict
from vkml import array_api
from vkml.array_api.left_out import LEFT_OUT, OTHERWISE

# What the module of array-api-strict holds beside the standard, and what came after 2024.12.
NOT_STANDARD = {
    *("ArrayAPIStrictFlags", "Device", "ModuleType", "broadcast_shapes", "isin"),
    *("get_array_api_strict_flags", "reset_array_api_strict_flags", "set_array_api_strict_flags"),
}
NAMES = sorted(
    {name for name in dir(strict) if not name.startswith("_")} - NOT_STANDARD
    | {f"linalg.{name}" for name in strict.linalg.__all__}
    | {"fft", "__array_namespace_info__", "__array_api_version__"}
)


def found_in(module, name):
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


FUNCTIONS = [
    name for name in NAMES if inspect.isroutine(found_in(strict, name)) and name not in LEFT_OUT
]


def test_every_name_is_there_or_left_out_for_a_reason():
    missing = [name for name in NAMES if found_in(array_api, name) is None and name != "newaxis"]
    assert missing == sorted(LEFT_OUT)
    assert len(NAMES) > 170
    assert all(LEFT_OUT.values())
    assert array_api.newaxis is None
    assert array_api.__array_api_version__ == strict.__array_api_version__


def test_arrays_have_the_standards_attributes_and_methods():
    array = strict.asarray([1.0])
    standard = {name for name in dir(array) if not name.startswith("_")}
    operators = {name for name in dir(array) if re.fullmatch(r"__[a-z_]+__", name)}
    operators -= set(dir(object)) | {"__slots__", "__weakref__", "__module__", "__buffer__"}
    assert {name for name in standard | operators if not hasattr(vkml.Tensor, name)} == set()
    assert len(operators) > 40
    x = vkml.ones(2, 3)
    assert isinstance(vkml.Tensor.size, property) == ("Tensor.size" not in OTHERWISE)
    assert (x.shape, x.ndim, x.dtype, x.device) == ((2, 3), 2, vkml.float32, vkml.cpu)
    assert x.T.shape == x.mT.shape == (3, 2)


def parameters_of(function):
    """(name, kind, default) of each parameter; those of the native module's first overload too."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        text = function.__nb_signature__[0][0]
        text = re.sub(r"= \\(\d+)", "= ...", text)
        arguments = ast.parse(text + ": ...").body[0].args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        return None, [name for name in names if name != "self"]
    return signature.parameters, list(signature.parameters)


def is_undefined(value):
    return type(value).__name__ == "Undef"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures(name):
    ours, names = parameters_of(found_in(array_api, name))
    theirs = inspect.signature(found_in(strict, name)).parameters
    for position, (parameter_name, parameter) in enumerate(theirs.items()):
        if ours is None:
            # A native function takes its operands by position; what has a name has the standard's.
            if parameter.kind is not parameter.POSITIONAL_ONLY:
                assert parameter_name in names or parameter.kind is parameter.VAR_POSITIONAL
            continue
        assert names[position] == parameter_name
        assert ours[parameter_name].kind == parameter.kind
        if not is_undefined(parameter.default):
            assert ours[parameter_name].default == parameter.default


def numpy_of(array):
    if isinstance(array, vkml.Tensor):
        return array.numpy()
    return np.from_dlpack(array) if isinstance(array, type(strict.asarray(0))) else array


def samples(dtype, shape=(3, 4), seed=0):
    """Arrays in every function's domain."""
    random = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        return random.uniform(0.1, 0.9, shape).astype(dtype)
    return random.integers(1, 7, shape).astype(dtype)


def flat(result):
    """The arrays of a result, in order."""
    if isinstance(result, (tuple, list)):
        return [part for item in result for part in flat(item)]
    return [result]


def compare(name, call, arrays):
    """Calls both; where the strict one refuses, the other may do what it likes."""
    kinds = {array.dtype.kind.replace("u", "i") for array in arrays}
    if len(kinds) > 1:  # which the standard leaves open
        return False
    try:
        expected = call(strict, *(strict.asarray(array) for array in arrays))
    except TypeError:
        return False
    actual = call(array_api, *(vkml.tensor(array) for array in arrays))
    assert len(flat(actual)) == len(flat(expected))
    for ours, theirs in zip(flat(actual), flat(expected), strict=True):
        if not hasattr(theirs, "dtype"):
            assert ours == theirs
            continue
        assert ours.shape == theirs.shape, name
        assert dtype_name(ours.dtype) == expected_dtype(name, arrays, theirs), name
        np.testing.assert_allclose(
            numpy_of(ours).astype(np.float64),
            numpy_of(theirs).astype(np.float64),
            rtol=1e-5 if "32" in dtype_name(ours.dtype) else 1e-12,
            atol=1e-6,
            err_msg=name,
        )
    return True


ACCUMULATING = {"sum", "prod", "cumulative_sum", "cumulative_prod", "linalg.trace"}


def expected_dtype(name, arrays, theirs):
    """The strict dtype; sums of narrow integers have the default integer, which is int32 here."""
    strict_name = dtype_name(theirs.dtype)
    narrow = arrays and arrays[0].dtype.kind in "iu" and arrays[0].dtype != np.int64
    if name in ACCUMULATING and narrow and strict_name in ("int64", "uint64"):
        assert strict_name == "int64" or f"{name} of {arrays[0].dtype}" in OTHERWISE
        return "int32"
    return strict_name


def elementwise_arity(name):
    function = found_in(strict, name)
    is_elementwise = function.__module__.endswith("_elementwise_functions") and name != "clip"
    return len(inspect.signature(function).parameters) if is_elementwise else 0


ELEMENTWISE = [name for name in FUNCTIONS if elementwise_arity(name) > 0]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_dtypes_and_values(name):
    arity = elementwise_arity(name)
    accepted = 0
    for dtypes in itertools.product(DTYPES, repeat=arity):
        arrays = [samples(dtype, seed=k) for k, dtype in enumerate(dtypes)]
        if name == "acosh":
            arrays = [array + array.dtype.type(1) for array in arrays]
        accepted += compare(name, lambda xp, *given: getattr(xp, name)(*given), arrays)
    assert accepted > 0 or name == "imag"
    for dtype in DTYPES if arity == 2 else ():
        for number in (True, 2, 0.5):
            call = lambda xp, x, number=number: getattr(xp, name)(x, number)  # noqa: E731
            compare(name, call, [samples(dtype)])
            call = lambda xp, x, number=number: getattr(xp, name)(number, x)  # noqa: E731
            compare(name, call, [samples(dtype)])


def matrix(dtype):
    return samples(dtype, (2, 3, 3)) + 2 * np.eye(3, dtype=dtype)


def symmetric(dtype):
    m = matrix(dtype)
    return m @ np.swapaxes(m, -1, -2)


def reductions(name, **more):
    def calls(xp, x):
        f = found_in(xp, name)
        return [
            f(x, **more),
            f(x, axis=1, **more),
            f(x, axis=(0, -1), keepdims=True, **more),
            f(x, axis=-1, keepdims=True, **more),
        ]

    return calls


def scans(name):
    def calls(xp, x):
        f = found_in(xp, name)
        return [
            f(x, axis=1),
            f(x, axis=0, include_initial=True),
            f(x, axis=-1, dtype=xp.float64),
            f(x[0, :], include_initial=True),
        ]

    return calls


def made(name, *arguments, **more):
    """With the default dtype, whose width is each library's own, and with another one."""
    return lambda xp: [
        xp.astype(found_in(xp, name)(*arguments, **more), xp.float64),
        found_in(xp, name)(*arguments, dtype=xp.float64, **more),
    ]


def sign_free(factors):
    """A factorisation whose columns may have either sign."""
    return [abs_of(part) for part in factors]


def abs_of(x):
    return (x**2) ** 0.5


I64 = np.array([2, 0, 1, 0])
# Calls for what is not elementwise: a function of the namespace and the arrays, and the arrays'
# shapes, or makers of arrays.
CALLS = {
    "arange": [(made("arange", 0.0, 2.5, 0.5), [])],
    "asarray": [
        (lambda xp, x: [xp.asarray(x), xp.asarray(x, copy=True)], [(2, 3)]),
        (lambda xp: xp.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=xp.float64), []),
    ],
    "zeros": [(made("zeros", (2, 3)), []), (made("zeros", 4), [])],
    "ones": [(made("ones", (2, 3)), [])],
    "empty": [(lambda xp: xp.empty((2, 3), dtype=xp.float64) * 0, [])],
    "full": [(made("full", (2,), 3.5), [])],
    "eye": [(made("eye", 3), []), (made("eye", 2, 4, k=1), []), (made("eye", 4, 2, k=-1), [])],
    "linspace": [
        (made("linspace", 0.0, 1.0, 5), []),
        (made("linspace", 0.0, 1.0, num=4, endpoint=False), []),
    ],
    "meshgrid": [
        (
            lambda xp, x: [
                *xp.meshgrid(x, x[:2]),
                *xp.meshgrid(x[:2], x, indexing="ij"),
            ],
            [(3,)],
        )
    ],
    "zeros_like": [(lambda xp, x: [xp.zeros_like(x), xp.zeros_like(x, dtype=xp.int32)], [(2, 3)])],
    "ones_like": [(lambda xp, x: xp.ones_like(x), [(2, 3)])],
    "empty_like": [(lambda xp, x: xp.astype(xp.empty_like(x), xp.float32) * 0, [(2, 3)])],
    "full_like": [(lambda xp, x: xp.full_like(x, True if x.dtype == xp.bool else 1), [(2, 3)])],
    "from_dlpack": [(lambda xp, x: xp.from_dlpack(x), [(2, 3)])],
    "tril": [(lambda xp, x: [xp.tril(x), xp.tril(x, k=1)], [(2, 3, 4)])],
    "triu": [(lambda xp, x: [xp.triu(x), xp.triu(x, k=-1)], [(2, 3, 4)])],
    "astype": [(lambda xp, x: [xp.astype(x, getattr(xp, d)) for d in DTYPES], [(2, 3)])],
    "clip": [
        (lambda xp, x: [xp.clip(x, 1, 3), xp.clip(x, max=2), xp.clip(x, 2), xp.clip(x)], [(3, 4)]),
        (lambda xp, x, y: xp.clip(x, y, max=y), [(3, 4), (4,)]),
    ],
    "broadcast_arrays": [(lambda xp, x, y: xp.broadcast_arrays(x, y), [(3, 1), (2, 1, 4)])],
    "broadcast_to": [(lambda xp, x: xp.broadcast_to(x, (2, 3, 4)), [(3, 1)])],
    "concat": [
        (lambda xp, x, y: [xp.concat([x, y]), xp.concat((x, y), axis=None)], [(3, 4), (2, 4)]),
        (lambda xp, x, y: xp.concat([x, y], axis=-1), [(3, 4), (3, 1)]),
    ],
    "stack": [(lambda xp, x, y: [xp.stack([x, y]), xp.stack((x, y), axis=-1)], [(3, 4), (3, 4)])],
    "unstack": [(lambda xp, x: [*xp.unstack(x), *xp.unstack(x, axis=-1)], [(3, 4)])],
    "expand_dims": [(lambda xp, x: [xp.expand_dims(x, axis=i) for i in (-3, 0, 1, 2)], [(3, 4)])],
    "squeeze": [(lambda xp, x: [xp.squeeze(x, 0), xp.squeeze(x, axis=(0, -2))], [(1, 3, 1, 2)])],
    "flip": [(lambda xp, x: [xp.flip(x), xp.flip(x, axis=0), xp.flip(x, axis=(0, 1))], [(3, 4)])],
    "roll": [
        (
            lambda xp, x: [
                xp.roll(x, 2),
                xp.roll(x, -1, axis=1),
                xp.roll(x, (1, 2), axis=(0, 1)),
                xp.roll(x, 1, axis=(0, 1)),
            ],
            [(3, 4)],
        )
    ],
    "moveaxis": [
        (lambda xp, x: [xp.moveaxis(x, 0, -1), xp.moveaxis(x, (0, 1), (2, 0))], [(2, 3, 4)])
    ],
    "permute_dims": [(lambda xp, x: xp.permute_dims(x, (2, 0, 1)), [(2, 3, 4)])],
    "reshape": [(lambda xp, x: [xp.reshape(x, (4, 3)), xp.reshape(x, (-1,), copy=True)], [(3, 4)])],
    "repeat": [
        (lambda xp, x: [xp.repeat(x, 2), xp.repeat(x, 3, axis=1)], [(3, 4)]),
        (
            lambda xp, x: xp.repeat(x, xp.asarray([1, 0, 2], dtype=xp.int64), axis=0),
            [(3, 4)],
        ),
    ],
    "tile": [(lambda xp, x: [xp.tile(x, (2,)), xp.tile(x, (2, 1, 3))], [(3, 4)])],
    "argmax": [
        (lambda xp, x: [xp.argmax(x), xp.argmax(x, axis=1, keepdims=True)], [(3, 4)]),
    ],
    "argmin": [(lambda xp, x: [xp.argmin(x), xp.argmin(x, axis=0)], [(3, 4)])],
    "argsort": [(lambda xp, x: [xp.argsort(x), xp.argsort(x, axis=0, descending=True)], [(3, 4)])],
    "sort": [(lambda xp, x: [xp.sort(x), xp.sort(x, axis=0, descending=True)], [(3, 4)])],
    "count_nonzero": [(reductions("count_nonzero"), [(3, 4)])],
    "nonzero": [
        (lambda xp, x: xp.nonzero(x > 3) if x.dtype != xp.bool else xp.nonzero(x), [(3, 4)])
    ],
    "searchsorted": [
        (
            lambda xp, x, y: [
                xp.searchsorted(xp.sort(x), y),
                xp.searchsorted(xp.sort(x), y, side="right"),
                xp.searchsorted(x, y, sorter=xp.argsort(x)),
            ],
            [(5,), (2, 3)],
        )
    ],
    "take": [
        (lambda xp, x: xp.take(x, xp.asarray(I64), axis=1), [(3, 4)]),
        (lambda xp, x: xp.take(x, xp.asarray(I64)), [(4,)]),
    ],
    "take_along_axis": [
        (lambda xp, x: xp.take_along_axis(x, xp.asarray(I64[None, :]), axis=0), [(3, 4)]),
        (lambda xp, x: xp.take_along_axis(x, xp.argsort(x)), [(3, 4)]),
    ],
    "where": [(lambda xp, x, y: [xp.where(x > y, x, y), xp.where(x > y, 1, y)], [(3, 4), (4,)])],
    "unique_all": [(lambda xp, x: [*xp.unique_all(x)], [(5, 4)])],
    "unique_counts": [(lambda xp, x: [*xp.unique_counts(x)], [(5, 4)])],
    "unique_inverse": [(lambda xp, x: [*xp.unique_inverse(x)], [(5, 4)])],
    "unique_values": [(lambda xp, x: xp.unique_values(x), [(5, 4)])],
    "all": [(reductions("all"), [(3, 4)])],
    "any": [(reductions("any"), [(3, 4)])],
    "max": [(reductions("max"), [(3, 4)])],
    "min": [(reductions("min"), [(3, 4)])],
    "mean": [(reductions("mean"), [(3, 4)])],
    "sum": [(reductions("sum"), [(3, 4)]), (lambda xp, x: xp.sum(x, dtype=xp.float64), [(3, 4)])],
    "prod": [(reductions("prod"), [(2, 2)])],
    "std": [(reductions("std"), [(3, 4)]), (reductions("std", correction=1.0), [(3, 4)])],
    "var": [(reductions("var"), [(3, 4)]), (reductions("var", correction=1), [(3, 4)])],
    "cumulative_sum": [(scans("cumulative_sum"), [(3, 4)])],
    "cumulative_prod": [(scans("cumulative_prod"), [(3, 4)])],
    "diff": [
        (lambda xp, x: [xp.diff(x), xp.diff(x, axis=0, n=2)], [(4, 4)]),
        (lambda xp, x, y: xp.diff(x, prepend=y, append=y), [(3, 4), (3, 1)]),
    ],
    "matmul": [(lambda xp, x, y: xp.matmul(x, y), [(2, 3, 4), (4, 5)])],
    "matrix_transpose": [(lambda xp, x: xp.matrix_transpose(x), [(2, 3, 4)])],
    "tensordot": [
        (lambda xp, x, y: xp.tensordot(x, y, axes=1), [(3, 4), (4, 2)]),
        (lambda xp, x, y: xp.tensordot(x, y, axes=((1, 0), (0, 1))), [(3, 4), (4, 3)]),
    ],
    "vecdot": [(lambda xp, x, y: [xp.vecdot(x, y), xp.vecdot(x, y, axis=-2)], [(3, 4), (3, 4)])],
    "linalg.cholesky": [
        (lambda xp, x: [xp.linalg.cholesky(x), xp.linalg.cholesky(x, upper=True)], [symmetric])
    ],
    "linalg.cross": [(lambda xp, x, y: xp.linalg.cross(x, y), [(4, 3), (4, 3)])],
    "linalg.det": [(lambda xp, x: xp.linalg.det(x), [matrix])],
    "linalg.diagonal": [
        (lambda xp, x: [xp.linalg.diagonal(x), xp.linalg.diagonal(x, offset=-1)], [(2, 3, 4)])
    ],
    "linalg.eigh": [
        (lambda xp, x: [xp.linalg.eigh(x)[0], *sign_free(xp.linalg.eigh(x)[1:])], [symmetric])
    ],
    "linalg.eigvalsh": [(lambda xp, x: xp.linalg.eigvalsh(x), [symmetric])],
    "linalg.inv": [(lambda xp, x: xp.linalg.inv(x), [matrix])],
    "linalg.matrix_norm": [
        (
            lambda xp, x: [
                xp.linalg.matrix_norm(x),
                *(xp.linalg.matrix_norm(x, ord=o) for o in ("nuc", 1, -1, 2, -2, xp.inf, -xp.inf)),
                xp.linalg.matrix_norm(x, keepdims=True, ord=2),
            ],
            [matrix],
        )
    ],
    "linalg.matrix_power": [
        (lambda xp, x: [xp.linalg.matrix_power(x, n) for n in (-2, 0, 1, 3)], [matrix])
    ],
    "linalg.matrix_rank": [
        (lambda xp, x: [xp.linalg.matrix_rank(x), xp.linalg.matrix_rank(x, rtol=0.5)], [matrix])
    ],
    "linalg.outer": [(lambda xp, x, y: xp.linalg.outer(x, y), [(3,), (4,)])],
    "linalg.pinv": [(lambda xp, x: [xp.linalg.pinv(x), xp.linalg.pinv(x, rtol=0.1)], [(2, 4, 3)])],
    "linalg.qr": [
        (lambda xp, x: sign_free(xp.linalg.qr(x)), [(2, 4, 3)]),
        (lambda xp, x: sign_free(xp.linalg.qr(x, mode="complete")), [(4, 3)]),
        (lambda xp, x: sign_free(xp.linalg.qr(x, mode="complete")), [(3, 4)]),
    ],
    "linalg.slogdet": [(lambda xp, x: [*xp.linalg.slogdet(x)], [matrix])],
    "linalg.solve": [(lambda xp, x, y: xp.linalg.solve(x, y), [matrix, (2, 3, 2)])],
    "linalg.svd": [
        (lambda xp, x: sign_free(xp.linalg.svd(x)), [(2, 4, 3)]),
        (lambda xp, x: sign_free(xp.linalg.svd(x)), [(3, 4)]),
        (lambda xp, x: sign_free(xp.linalg.svd(x, full_matrices=False)), [(4, 3)]),
    ],
    "linalg.svdvals": [(lambda xp, x: xp.linalg.svdvals(x), [(2, 4, 3)])],
    "linalg.trace": [
        (lambda xp, x: [xp.linalg.trace(x), xp.linalg.trace(x, offset=1)], [(2, 3, 4)]),
        (lambda xp, x: xp.linalg.trace(x, dtype=xp.float64), [(2, 3, 4)]),
    ],
    "linalg.vector_norm": [
        (
            lambda xp, x: [
                xp.linalg.vector_norm(x),
                *(xp.linalg.vector_norm(x, axis=1, ord=o) for o in (0, 1, 3, xp.inf, -xp.inf)),
                xp.linalg.vector_norm(x, axis=(0, 1), keepdims=True),
            ],
            [(3, 4)],
        )
    ],
}
for alias in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
    CALLS[f"linalg.{alias}"] = CALLS[alias]
OTHER_TESTS = {"can_cast", "finfo", "iinfo", "isdtype", "result_type", "__array_namespace_info__"}


def test_every_function_is_compared():
    compared = {*ELEMENTWISE, *CALLS, *OTHER_TESTS}
    assert compared == set(FUNCTIONS)


@pytest.mark.parametrize("name", list(CALLS))
def test_other_dtypes_and_values(name):
    accepted = 0
    for call, shapes in CALLS[name]:
        for dtypes in itertools.product(DTYPES, repeat=len(shapes)):
            if len(shapes) > 1 and "linalg" in name and len(set(dtypes)) > 1:
                continue
            arrays = [
                shape(dtype) if callable(shape) else samples(dtype, shape, seed=k)
                for k, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))
            ]
            accepted += compare(name, call, arrays)
    assert accepted > 0


def test_copies_and_devices(device):
    x = vkml.tensor([1.0, 2.0])
    assert array_api.asarray(x, copy=False) is x
    own = array_api.asarray(x, copy=True)
    x[0] = 5.0
    assert own.tolist() == [1, 2]
    with pytest.raises(vkml.ArgumentError, match="copy=False"):
        array_api.asarray(x, dtype=vkml.float64, copy=False)
    with pytest.raises(vkml.ArgumentError, match="copy=False"):
        array_api.asarray([1.0], copy=False)
    with pytest.raises(vkml.ArgumentError, match="copy=False"):
        array_api.reshape(vkml.ones(2, 3).T, (6,), copy=False)
    y = x.to_device(vkml.cpu)
    assert y.device == vkml.cpu
    assert array_api.asarray(x, device=vkml.cpu).device == vkml.cpu
    assert array_api.astype(x, vkml.int32, device=vkml.cpu).device == vkml.cpu
    with pytest.raises(vkml.ArgumentError, match="stream"):
        x.to_device(vkml.cpu, stream=1)


def test_versions_and_errors():
    x = vkml.ones(2, 3)
    assert x.__array_namespace__() is array_api
    assert x.__array_namespace__(api_version="2022.12") is array_api
    with pytest.raises(vkml.ArgumentError, match=r"1999\.01"):
        x.__array_namespace__(api_version="1999.01")
    with pytest.raises(ValueError, match="squeeze"):
        array_api.squeeze(x, 0)
    with pytest.raises(IndexError, match="expand_dims"):
        array_api.expand_dims(x, axis=4)
    with pytest.raises(ValueError, match="take"):
        array_api.take(x, vkml.tensor([0]))
    with pytest.raises(ValueError, match="cumulative_sum"):
        array_api.cumulative_sum(x)
    with pytest.raises(ValueError, match="nonzero"):
        array_api.nonzero(vkml.tensor(1.0))
    with pytest.raises(ValueError, match="cross"):
        array_api.linalg.cross(x, vkml.ones(2, 2))
    with pytest.raises(ValueError, match="shape in common"):
        array_api.broadcast_shapes((2, 3), (2,))
    assert complex(vkml.tensor(1.5)) == 1.5
    x @= vkml.ones(3, 3)
    assert x.tolist() == [[3.0] * 3] * 2


def test_vkml_has_the_names_that_mean_the_same():
    shared = ("asarray", "finfo", "iinfo", "isdtype", "permute_dims", "unstack", "pi", "newaxis")
    for name in shared:
        assert getattr(vkml, name) is getattr(array_api, name)
