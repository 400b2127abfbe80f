"""Structural operators and creation against NumPy, value and gradient, on every device.

Every public function of the native module has to be covered here, in the elementwise table or in
another file that is named here, and to be documented.
"""

import inspect
from pathlib import Path

import numpy as np
import pytest

import vkml
from checking import assert_close, assert_ulps, check, exact, wide
from elementwise_references import all_names
from structural_cases import CASES, Case

# Functions without a value to compare; the file that tests them.
ELSEWHERE = {
    "test_activations.py": {"prelu"},
    "test_dlpack.py": {"from_dlpack"},
    "test_jit_errors.py": {"is_recording"},
    "test_missing_devices.py": {"missing_devices"},
    "test_two_devices.py": {"realize_by_device"},
    "test_array_api_dtypes.py": {"promote_types", "result_type"},
    "test_keywords.py": {"allclose", "equal", "float_power", "mvlgamma", "polygamma", "rsub"},
    "test_context.py": {
        "from_numpy",
        "allocated_bytes",
        "cache_info",
        "clear_cache",
        "clear_coverage",
        "coverage",
        "default_device",
        "depth_limit",
        "devices",
        "explain",
        "initial_seed",
        "is_eager",
        "is_grad_enabled",
        "manual_seed",
        "realize",
        "set_coverage",
        "set_default_device",
        "set_depth_limit",
        "set_eager",
        "set_grad_enabled",
        "synchronize",
    },
    "test_anomaly.py": {"is_anomaly_check_nan_enabled", "is_anomaly_enabled"},
    "test_autograd.py": {"grad"},
    "test_matmul.py": {"matmul_precision", "set_matmul_precision"},
    "test_distributions.py": {
        "bernoulli",
        "exponential",
        "gamma",
        "gumbel",
        "multinomial",
        "normal",
        "randperm",
        "truncated_normal",
        "uniform",
    },
}
CREATION = {
    "arange",
    "dropout",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "tensor",
    "zeros",
    "zeros_like",
}


def public_functions() -> set[str]:
    native = vkml._vkml
    return {
        name
        for name in dir(native)
        if not name.startswith("_")
        and callable(getattr(native, name))
        and not inspect.isclass(getattr(native, name))
    }


def test_every_public_function_is_covered() -> None:
    covered = all_names() | {case.name for case in CASES} | CREATION
    covered = covered.union(*ELSEWHERE.values())
    for file, names in ELSEWHERE.items():
        text = (Path(__file__).parent / file).read_text()
        assert [name for name in names if f"vkml.{name}" not in text] == []
    assert public_functions() - covered == set()


# Functions whose result does not change with small changes of a floating operand: integers, bools,
# or new tensors.
NAN_REDUCTIONS = {"nansum", "nanmean"}  # test_gradients_of_sums_without_nan
WITHOUT_GRADIENT = NAN_REDUCTIONS | {
    *("all", "any", "argmax", "argmin", "argsort", "argwhere", "bincount", "bucketize"),
    *("count_nonzero", "eye", "histc", "histogram", "isin", "linspace", "logspace", "nonzero"),
    *("one_hot", "searchsorted", "tril_indices", "triu_indices", "unique", "unique_consecutive"),
}
# Nodes that vkML puts into graphs by itself: parts of gradients, of assignment and of creation.
INTERNAL = {
    *("assign", "attention_log_sum_exp", "conv2d_input_gradient", "iota", "max_pool2d_indices"),
    "view_update",
}


def test_every_function_of_floats_has_a_gradient_test() -> None:
    """A new function has a case with a gradient, or is named above."""
    tested = {case.name for case in CASES if case.gradient}
    untested = {case.name for case in CASES} - tested
    assert untested == WITHOUT_GRADIENT


def test_every_operator_that_runs_is_registered() -> None:
    """The registry of the record names whatever the cases leave in a graph."""
    vkml.clear_coverage()
    vkml.set_coverage(True)
    try:
        for case in CASES:
            case.function(*tensors_of(case, vkml.cpu)).realize()
        ran = {name for counts in vkml.coverage().values() for name in counts}
    finally:
        vkml.set_coverage(False)
        vkml.clear_coverage()
    assert {name for name in ran if name not in vkml.autograd.registry} <= INTERNAL
    assert len(ran) > 60


def is_documented(thing: object) -> bool:
    """A docstring beyond the signature that nanobind writes."""
    text = inspect.getdoc(thing) or ""
    first, _, rest = text.partition("\n")
    return bool(rest.strip()) if "->" in first else bool(text.strip())


def test_every_public_function_and_method_is_documented() -> None:
    silent = [name for name in public_functions() if not is_documented(getattr(vkml, name))]
    assert silent == []
    methods = [name for name in dir(vkml.Tensor) if not name.startswith("_")]
    assert [name for name in methods if not is_documented(getattr(vkml.Tensor, name))] == []


def tensors_of(case: Case, device: object) -> list:
    return [vkml.tensor(array, device=device) for array in case.arrays]


def assert_matches(case: Case, result: object) -> None:
    expected = np.asarray(case.reference(*(wide(array) for array in case.arrays)))
    if result.dtype == vkml.float32:
        assert_close(result, expected, case.units)
    else:
        assert not np.issubdtype(expected.dtype, np.floating)
        np.testing.assert_array_equal(exact(result), expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_gradients(case: Case, device: object) -> None:
    if case.gradient:
        check(case.function, case.reference, list(case.arrays), device, max(case.units, 2))
    assert_matches(case, case.function(*tensors_of(case, device)))


def reversed_view(tensor: object) -> object:
    """The same elements, read backwards from memory that holds them in reverse."""
    index = (slice(None, None, -1),) * tensor.ndim
    return tensor[index].contiguous()[index] if tensor.ndim else tensor


def strided_view(tensor: object) -> object:
    """The same elements, every second of a longer row."""
    if tensor.ndim == 0:
        return tensor
    return vkml.stack([tensor, vkml.zeros_like(tensor)], -1).flatten(-2)[..., ::2]


def transposed_view(tensor: object) -> object:
    """The same elements in column-major memory."""
    return tensor.T.contiguous().T


VIEWS = {"reversed": reversed_view, "strided": strided_view, "transposed": transposed_view}


@pytest.mark.parametrize("view", list(VIEWS))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layouts(case: Case, view: str, device: object) -> None:
    views = []
    for tensor in tensors_of(case, device):
        fits = tensor.ndim < 4 or view != "strided"
        views.append(VIEWS[view](tensor) if fits else tensor)
    assert_matches(case, case.function(*views))
    computed = [tensor.realize() for tensor in views]
    assert_matches(case, case.function(*computed))


@pytest.mark.parametrize("dtype", [vkml.float16, vkml.bfloat16, vkml.float64], ids=str)
@pytest.mark.parametrize("name", sorted({case.name for case in CASES}))
def test_other_floats(name: str, dtype: object, device: object) -> None:
    """Halves accumulate in float32: the result is off by its own rounding alone."""
    precision = {vkml.float16: 2.0**-11, vkml.bfloat16: 2.0**-8, vkml.float64: 2.0**-52}[dtype]
    for case in (case for case in CASES if case.name == name):
        if not any(np.issubdtype(array.dtype, np.floating) for array in case.arrays):
            continue
        tensors = [
            vkml.tensor(array, device=device).to(dtype)
            if np.issubdtype(array.dtype, np.floating)
            else vkml.tensor(array, device=device)
            for array in case.arrays
        ]
        result = case.function(*tensors)
        expected = np.asarray(case.reference(*(exact(tensor) for tensor in tensors)))
        if np.issubdtype(expected.dtype, np.floating):
            assert result.dtype == dtype, case
            scale = np.max(np.abs(expected), initial=1.0)
            # A few roundings on the way: normalised values are scaled and shifted in the half.
            bound = (4 + (case.units if dtype == vkml.float64 else 0)) * precision * scale
            np.testing.assert_allclose(
                exact(result), expected, rtol=0, atol=bound, err_msg=str(case)
            )
        else:
            np.testing.assert_array_equal(exact(result), expected, str(case))


@pytest.mark.parametrize("dtype", [vkml.uint8, vkml.int32, vkml.int64, vkml.bool], ids=str)
def test_integer_reductions(dtype: object, device: object) -> None:
    limit = {vkml.uint8: 256, vkml.int32: 2**31 - 1, vkml.int64: 2**62, vkml.bool: 2}[dtype]
    low = 0 if dtype in (vkml.uint8, vkml.bool) else -limit
    array = np.random.default_rng(1).integers(low, limit, (7, 33))
    x = vkml.tensor(array, dtype=dtype, device=device)
    accumulated = np.int64 if dtype == vkml.int64 else np.int32
    narrow = exact(x)
    for axis in (None, 0, 1):
        total = x.sum(axis=axis)
        product = x.prod(axis=axis)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(exact(total), narrow.sum(axis=axis, dtype=accumulated))
            np.testing.assert_array_equal(exact(product), narrow.prod(axis=axis, dtype=accumulated))
        for name in ("amax", "amin", "argmax", "argmin", "any", "all"):
            reference = getattr(np, name)(narrow, axis=axis)
            np.testing.assert_array_equal(exact(getattr(x, name)(axis=axis)), reference, name)
    assert x.mean().dtype == vkml.float32


@pytest.mark.parametrize("dtype", [vkml.uint8, vkml.int32, vkml.int64], ids=str)
def test_integer_products_wrap(dtype: object, device: object) -> None:
    array = np.random.default_rng(2).integers(0, 2**31 - 1, (5, 9))
    a = vkml.tensor(array, dtype=dtype, device=device)
    narrow = exact(a)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(exact(a @ a.T), narrow @ narrow.T)


def test_empty_tensors(device: object) -> None:
    none = vkml.zeros(3, 0, device=device)
    assert exact(none.sum(dim=1)).tolist() == [0, 0, 0]
    assert exact(none.prod(dim=1)).tolist() == [1, 1, 1]
    assert none.sum(dim=0).shape == (0,)
    assert exact(none.all(dim=1)).tolist() == [True] * 3
    assert np.isnan(exact(none.mean(dim=1))).all()
    for name in ("amax", "amin", "argmax", "argmin"):
        with pytest.raises(vkml.ShapeError, match="of no elements"):
            getattr(none, name)(dim=1)
        assert getattr(none, name)(dim=0).shape == (0,)
    assert vkml.softmax(none, 1).shape == (3, 0)
    assert vkml.cat([none, vkml.ones(3, 2, device=device)], 1).shape == (3, 2)
    assert vkml.conv2d(
        vkml.zeros(0, 1, 4, 4, device=device), vkml.ones(2, 1, 3, 3, device=device)
    ).shape == (
        0,
        2,
        2,
        2,
    )


SPECIAL_ROWS = [
    [3, np.nan, 1, 5],
    [np.inf, 2, -np.inf, 2],
    [-np.inf, -np.inf, -np.inf, -np.inf],
    [np.inf, np.inf, 0, 1],
    [-0.0, 0.0, -0.0, 0.0],
    [1e38, 1e38, 1e38, 1e38],
]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_reductions_of_special_values(device: object) -> None:
    array = np.array(SPECIAL_ROWS, dtype=np.float32)
    x = vkml.tensor(array, device=device)
    with np.errstate(all="ignore"):
        for name in ("amax", "amin", "argmax", "argmin", "any", "all"):
            reference = getattr(np, name)(array, axis=1)
            np.testing.assert_array_equal(exact(getattr(x, name)(dim=1)), reference, name)
        sums = array.astype(np.float64).sum(1)
        assert_ulps(x.sum(dim=1), sums, 2, "sum")
        logsumexp = np.array([np.nan, np.inf, -np.inf, np.inf, np.log(4), 1e38])
        assert_ulps(x.logsumexp(dim=1), logsumexp, 4, "logsumexp")


def test_gradients_of_sums_without_nan(device: object) -> None:
    """Elements that do not count have no gradient; differences of the reference are NaN there."""
    array = np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, 6.0]], dtype=np.float32)
    counts = np.array([1.0, 1.0, 2.0])
    for name, share in (("nansum", np.ones(3)), ("nanmean", 1 / counts)):
        x = vkml.tensor(array, device=device, requires_grad=True)
        getattr(vkml, name)(x, 0).backward(vkml.tensor([2.0, 3.0, 4.0], device=device))
        expected = np.where(np.isnan(array), 0, np.array([2.0, 3.0, 4.0]) * share)
        assert_ulps(x.grad, expected, 2, name)


def test_bad_arguments_raise_before_anything_runs(device: object) -> None:
    x = vkml.ones(2, 3, device=device)
    for call in (
        lambda: vkml.matmul(x, x),
        lambda: x + vkml.ones(4, device=device),
        lambda: x.reshape(7),
        lambda: x.sum(dim=2),
        lambda: x.sum(dim=(0, 0)),
        lambda: x.permute(0, 0),
        lambda: vkml.cat([x, vkml.ones(3, 2, device=device)]),
        lambda: vkml.conv2d(x, x),
        lambda: vkml.einsum("ii->i", x),
        lambda: x.broadcast_to((3, 2)),
        lambda: vkml.stack([x, vkml.ones(3, device=device)]),
    ):
        with pytest.raises(vkml.ShapeError, match=r"^\[\w+\] "):
            call()
    with pytest.raises(vkml.ShapeError, match=r"\[dot\] vectors of 3 and 4 elements"):
        vkml.dot(x[0], vkml.ones(4, device=device))
    with pytest.raises(vkml.DTypeError, match="matmul"):
        vkml.matmul(x > 0, (x > 0).T)
    with pytest.raises(vkml.DTypeError, match="gather"):
        vkml.gather(x, 0, x)
    with pytest.raises(vkml.ArgumentError):
        vkml.conv2d(vkml.ones(1, 1, 3, 3), vkml.ones(1, 1, 1, 1), stride=0)


def test_creation(device: object) -> None:
    assert vkml.zeros(2, 3).tolist() == [[0.0] * 3] * 2
    assert vkml.ones((2,), dtype=vkml.int64).tolist() == [1, 1]
    assert vkml.empty(3).shape == (3,)
    assert vkml.full((2, 2), 7).dtype == vkml.int32
    assert vkml.full((2,), 0.5, dtype=vkml.float16).tolist() == [0.5, 0.5]
    like = vkml.ones(2, 3, dtype=vkml.float16)
    for function in (
        vkml.zeros_like,
        vkml.ones_like,
        vkml.empty_like,
        vkml.rand_like,
        vkml.randn_like,
    ):
        made = function(like)
        assert (made.shape, made.dtype, made.device) == (like.shape, like.dtype, like.device)
    assert vkml.full_like(like, 3).tolist() == [[3.0] * 3] * 2
    for arguments in ((5,), (2, 9), (9, 2, -3), (0, 1, 0.25), (1.5, 4.0), (3, 3)):
        made, expected = vkml.arange(*arguments), np.arange(*arguments)
        np.testing.assert_array_equal(exact(made), expected, str(arguments))
    assert vkml.zeros(2).device == vkml.default_device()


def test_tensor_takes_what_numpy_takes(device: object) -> None:
    for data in (
        3,
        2.5,
        True,
        [1, 2],
        [[1.5], [2]],
        [],
        [[], []],
        [True, False],
        (1, (2)),
        range(3),
    ):
        array = np.asarray(data)
        tensor = vkml.tensor(data)
        assert tensor.shape == array.shape
        np.testing.assert_array_equal(exact(tensor), array)
    with pytest.raises(vkml.VkmlError):
        vkml.tensor([[1, 2], [3]])
    with pytest.raises(vkml.VkmlError):
        vkml.tensor(["a"])


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int32, np.int64, np.bool_, np.float16, np.float32, np.float64]
)
def test_numpy_round_trip(dtype: type, device: object) -> None:
    array = (np.arange(24) % 2 if dtype is np.bool_ else np.arange(24)).astype(dtype)
    for view in (
        array,
        array.reshape(2, 3, 4).T,
        array[::-2],
        array[3:3],
        array.reshape(4, 6)[1:3, ::2],
    ):
        back = vkml.tensor(view, device=device).numpy()
        assert back.dtype == view.dtype
        np.testing.assert_array_equal(back, view)


CASTS = [vkml.bool, vkml.uint8, vkml.int32, vkml.int64, vkml.float16, vkml.float32, vkml.float64]


def saturated(values: np.ndarray, dtype: object) -> np.ndarray:
    """Floats as integers: truncated, limited to the range, NaN as 0."""
    limits = np.iinfo({vkml.uint8: np.uint8, vkml.int32: np.int32, vkml.int64: np.int64}[dtype])
    whole = [
        0
        if np.isnan(v)
        else min(max(int(np.trunc(np.clip(v, -1e30, 1e30))), limits.min), limits.max)
        for v in values
    ]
    return np.array(whole, dtype=limits.dtype)


@pytest.mark.parametrize("target", CASTS, ids=str)
@pytest.mark.parametrize("source", CASTS, ids=str)
def test_casts(source: object, target: object, device: object) -> None:
    numbers = [0, 1, 2, 100, 255]
    if source not in (vkml.bool, vkml.uint8):
        numbers += [-1, -100, 1000, 65504]
    if source in (vkml.int32, vkml.int64):
        numbers += [2**31 - 1, -(2**31), 2**24 + 1]
    if source == vkml.int64:
        numbers += [2**63 - 1, -(2**63), 2**40 + 7]
    if source in (vkml.float16, vkml.float32, vkml.float64):
        numbers += [0.5, -0.5, 1.75, -2.5, np.inf, -np.inf, np.nan]
    if source in (vkml.float32, vkml.float64):
        numbers += [3e9, -3e9, 1e20, -1e20, 70000.0, 1 + 2.0**-11, 2.0**-25, 65519.9]
    x = vkml.tensor(
        np.array(numbers, dtype=np.float64 if source in CASTS[4:] else np.int64), device=device
    )
    x = x.to(source)
    values = exact(x)
    result = x.to(target)
    assert result.dtype == target
    actual = exact(result)
    kinds = {
        vkml.bool: np.bool_,
        vkml.uint8: np.uint8,
        vkml.int32: np.int32,
        vkml.int64: np.int64,
        vkml.float16: np.float16,
        vkml.float32: np.float32,
        vkml.float64: np.float64,
    }
    with np.errstate(all="ignore"):
        if source in CASTS[4:] and target in CASTS[1:4]:
            expected = saturated(values, target)
        elif source == vkml.float64 and target == vkml.float16:
            # Through float32 everywhere: one more rounding is allowed.
            expected = values.astype(np.float32).astype(np.float16)
        else:
            expected = values.astype(kinds[target])
    if target == vkml.float16:
        assert_ulps(result, expected.astype(np.float64), 1, (source, target))
    else:
        np.testing.assert_array_equal(actual, expected.astype(actual.dtype))


def test_dropout(device: object) -> None:
    vkml.manual_seed(3)
    x = vkml.ones(100, 100, device=device, requires_grad=True)
    y = vkml.dropout(x, 0.25)
    values = exact(y)
    kept = values != 0
    np.testing.assert_allclose(values[kept], 1 / 0.75, rtol=1e-6)
    assert abs(kept.mean() - 0.75) < 0.02
    y.backward(vkml.ones_like(y))
    np.testing.assert_array_equal(exact(x.grad), values)
    assert exact(vkml.dropout(x, 0.5, training=False)).all()
    assert not exact(vkml.dropout(x, 1.0)).any()
    with pytest.raises(vkml.ArgumentError, match="dropout"):
        vkml.dropout(x, 1.5)


def test_random_numbers(device: object) -> None:
    vkml.manual_seed(7)
    uniform = vkml.rand(40000, device=device)
    normal = vkml.randn(40000, device=device)
    again = vkml.rand(40000, device=device)
    integers = vkml.randint(-3, 5, (40000,), device=device)
    u, n, r = exact(uniform), exact(normal), exact(integers)
    assert u.min() >= 0
    assert u.max() < 1
    assert abs(u.mean() - 0.5) < 0.01
    assert abs(n.mean()) < 0.02
    assert abs(n.std() - 1) < 0.02
    assert not np.array_equal(u, exact(again))
    assert sorted(set(r.tolist())) == list(range(-3, 5))
    assert integers.dtype == vkml.int64
    vkml.manual_seed(7)
    np.testing.assert_array_equal(exact(vkml.rand(40000, device=device)), u)


def test_the_same_random_numbers_on_every_device() -> None:
    streams = []
    for info in vkml.devices():
        vkml.manual_seed(11)
        streams.append(exact(vkml.rand(1000, device=info.device)))
    for stream in streams[1:]:
        np.testing.assert_array_equal(stream, streams[0])


# The references of these know their array alone.
FIXED = {"unique_consecutive", "einsum"}
SINGLE = [
    case
    for case in CASES
    if len(case.arrays) == 1 and case.arrays[0].ndim > 0 and case.name not in FIXED
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", SINGLE, ids=str)
def test_no_elements_along_the_first_axis(case: Case, device: object) -> None:
    """What NumPy says of it, or an error that says why: never a crash or another shape."""
    array = case.arrays[0][:0]
    try:
        result = exact(case.function(vkml.tensor(array, device=device)))
    except vkml.VkmlError:
        return
    try:
        with np.errstate(all="ignore"):
            expected = np.asarray(case.reference(wide(array)))
    except (ValueError, IndexError, TypeError, ZeroDivisionError):
        return
    assert result.shape == expected.shape
    if result.size > 0:
        np.testing.assert_allclose(result, expected, rtol=1e-5)
