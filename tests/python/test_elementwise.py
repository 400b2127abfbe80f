"""Every row of the elementwise table against NumPy and SciPy, value and gradient, on every device.

The rows and their bounds are those of docs/operators.md.
"""

import itertools

import numpy as np
import pytest
import scipy.special

import vkml
from checking import FLOATS, assert_ulps, exact
from elementwise_references import (
    REFERENCES,
    Reference,
    StatedRow,
    formula,
    reference_of,
    stated_rows,
)

ROWS = {row.name: row for row in stated_rows()}
NAMES = sorted(ROWS)
SHAPES = [(), (0,), (1,), (7,), (3, 1, 5), (2, 0, 3), (2, 3, 4, 5), (1025,), (70001,)]
INTEGERS = {vkml.uint8: np.uint8, vkml.int32: np.int32, vkml.int64: np.int64}
# Bools have no arithmetic but these (or and and), as in NumPy.
NOT_FOR_BOOLS = {
    "sub",
    "neg",
    "floor_divide",
    "trunc_divide",
    "remainder",
    "fmod",
    "frac",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "gcd",
    "isclose",
    "lcm",
}
NUMPY_LACKS_BOOLS = {"sign", "floor", "ceil", "trunc", "round"}
# SciPy's value at 1.5 is 34 units off 16 - 14 zeta(3), which vkML gives.
LESS_EXACT_IN_SCIPY = {"tetragamma"}


def is_random(row: StatedRow) -> bool:
    return row.name.startswith("random_")


def gives_float(row: StatedRow) -> bool:
    return row.result.endswith("give float32")


def takes_floats(row: StatedRow) -> bool:
    return not row.result.endswith("only") and not is_random(row)


FLOAT_NAMES = [name for name in NAMES if takes_floats(ROWS[name])]
INTEGER_NAMES = [name for name in NAMES if not is_random(ROWS[name])]
DIFFERENTIABLE = [name for name in NAMES if ROWS[name].differentiable]


def generator(*key: object) -> np.random.Generator:
    return np.random.default_rng(list(str(key).encode()))


def operands(row: StatedRow, shape: tuple[int, ...], dtype: object, device: object) -> list:
    """Tensors of a shape, spread over the row's domain."""
    random = generator(row.name, shape)
    return [
        vkml.tensor(random.uniform(*domain, shape), dtype=dtype, device=device)
        for domain in row.domains
    ]


def every_combination(row: StatedRow, values: np.ndarray) -> list[np.ndarray]:
    """All combinations of the values, with the default for operands that have one."""
    arrays = np.meshgrid(*[values if default is None else [default] for default in row.defaults])
    return [array.ravel().astype(values.dtype) for array in arrays]


def expected_of(row: StatedRow, tensors: list) -> np.ndarray:
    """The reference on the values that the tensors hold."""
    arrays = [exact(tensor) for tensor in tensors]
    if gives_float(row):
        arrays = [
            array if array.dtype == np.float64 else array.astype(np.float32).astype(np.float64)
            for array in arrays
        ]
    dtype = (
        str(tensors[0].dtype).removeprefix("vkml.") if tensors[0].is_floating_point() else "float32"
    )
    function = reference_of(row.name).by_dtype.get(dtype, reference_of(row.name).function)
    with np.errstate(all="ignore"):
        return np.asarray(function(*arrays))


def units(row: StatedRow, dtype: object) -> float:
    # SciPy rounds its arguments too: in float64 its own error is of the size of the bound.
    if dtype == vkml.float64 and row.ulps > 0:
        return 2 * row.ulps + 2
    return row.ulps


def check_values(row: StatedRow, tensors: list, context: object = "") -> None:
    result = getattr(vkml, row.name)(*tensors)
    assert_ulps(result, expected_of(row, tensors), units(row, result.dtype), (row.name, context))


def test_written_references_are_of_rows() -> None:
    assert set(REFERENCES) <= set(NAMES)
    assert len(NAMES) >= 40


def libraries_word(row: StatedRow) -> object:
    """NumPy's or SciPy's function of the operator: as written down, or by its name."""
    if row.name in REFERENCES:
        return REFERENCES[row.name].function
    for name in (row.name, *row.aliases):
        for library in (np, scipy.special):
            if isinstance(getattr(library, name, None), np.ufunc):
                return getattr(library, name)
    return getattr(np, row.name, None)


@pytest.mark.parametrize("name", NAMES)
def test_reference_formulas_are_what_libraries_say(name: str) -> None:
    row = ROWS[name]
    function = libraries_word(row)
    assert callable(function), f"neither NumPy nor SciPy has {name}: write its reference down"
    if is_random(row):
        random = generator(name)
        arrays = [random.integers(0, 10**6, 500).astype(np.float64) for _ in row.domains]
    elif takes_floats(row):
        random = generator(name)
        arrays = [random.uniform(*domain, 500) for domain in row.domains]
    else:
        random = generator(name)
        arrays = [random.integers(*domain, 500).astype(np.int32) for domain in row.domains]
    expected = np.asarray(function(*arrays), dtype=np.float64)
    actual = formula(name)(*arrays).astype(np.float64)
    np.testing.assert_allclose(actual, expected, rtol=3e-13, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_function_and_method_are_documented(name: str) -> None:
    assert len(getattr(vkml, name).__doc__.split("\n\n")) >= 2
    if name != "where" and not is_random(ROWS[name]):
        assert len(getattr(vkml.Tensor, name).__doc__.split("\n\n")) >= 2


ALIASES = [(alias, row.name) for row in ROWS.values() for alias in row.aliases]


@pytest.mark.parametrize(("alias", "name"), ALIASES)
def test_aliases(alias: str, name: str) -> None:
    tensors = operands(ROWS[name], (5,), vkml.int32 if "bit" in name else vkml.float32, vkml.cpu)
    expected = getattr(vkml, name)(*tensors).tolist()
    assert getattr(vkml, alias)(*tensors).tolist() == expected
    assert getattr(tensors[0], alias)(*tensors[1:]).tolist() == expected


KEEPS_DTYPE = [
    name
    for name in NAMES
    if ROWS[name].result.startswith(("the promoted dtype", "float32 or")) and name != "where"
]


@pytest.mark.parametrize("name", KEEPS_DTYPE)
def test_in_place_methods(name: str, device: object) -> None:
    row = ROWS[name]
    dtype = vkml.float32 if takes_floats(row) else vkml.int32
    tensors = operands(row, (3, 4), dtype, device)
    other_name, view = tensors[0], tensors[0][1]
    expected = exact(getattr(vkml, name)(*tensors))
    result = getattr(tensors[0], name + "_")(*tensors[1:])
    for tensor, array in ((result, expected), (other_name, expected), (view, expected[1])):
        np.testing.assert_array_equal(exact(tensor), array)


@pytest.mark.parametrize("name", FLOAT_NAMES)
def test_operands_have_names_and_defaults(name: str) -> None:
    row = ROWS[name]
    tensors = operands(row, (5,), vkml.float32, vkml.cpu)
    given = tensors[: row.arity - sum(default is not None for default in row.defaults)]
    defaults = [default for default in row.defaults if default is not None]
    expected = getattr(vkml, name)(*given, *defaults).tolist()
    assert str(getattr(vkml, name)(*given).tolist()) == str(expected)
    named = dict(zip(row.operands, [*given, *defaults], strict=True))
    assert str(getattr(vkml, name)(**named).tolist()) == str(expected)


@pytest.mark.parametrize("name", FLOAT_NAMES)
def test_shapes(name: str, device: object) -> None:
    row = ROWS[name]
    for shape in SHAPES:
        tensors = operands(row, shape, vkml.float32, device)
        check_values(row, tensors, shape)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("name", FLOAT_NAMES)
def test_floating_dtypes(name: str, dtype: object, device: object) -> None:
    row = ROWS[name]
    tensors = operands(row, (257,), dtype, device)
    result = getattr(vkml, name)(*tensors)
    assert result.dtype == (vkml.bool if row.result == "bool" else dtype)
    check_values(row, tensors, dtype)


@pytest.mark.parametrize("dtype", list(INTEGERS), ids=str)
@pytest.mark.parametrize("name", INTEGER_NAMES)
def test_integer_dtypes(name: str, dtype: object, device: object) -> None:
    row = ROWS[name]
    limits = np.iinfo(INTEGERS[dtype])
    edges = [0, 1, 2, 3, 7, 30, limits.max, limits.max - 1, limits.min]
    if limits.min < 0:
        edges += [-1, -2, -7, limits.min + 1]
    arrays = every_combination(row, np.array(edges, dtype=INTEGERS[dtype]))
    if gives_float(row):  # within the domain: the bound holds there
        arrays = [
            np.clip(array, np.ceil(low), np.floor(high)).astype(INTEGERS[dtype])
            for array, (low, high) in zip(arrays, row.domains, strict=True)
        ]
    tensors = [vkml.tensor(array, device=device) for array in arrays]
    assert all(tensor.dtype == dtype for tensor in tensors)
    result = getattr(vkml, name)(*tensors)
    if row.result == "bool":
        assert result.dtype == vkml.bool
    else:
        assert result.dtype == (vkml.float32 if gives_float(row) else dtype)
    check_values(row, tensors, dtype)


@pytest.mark.parametrize("name", INTEGER_NAMES)
def test_bools(name: str, device: object) -> None:
    row = ROWS[name]
    arrays = np.meshgrid(*[np.array([False, True])] * row.arity)
    tensors = [vkml.tensor(array.ravel(), device=device) for array in arrays]
    if name in NOT_FOR_BOOLS:
        with pytest.raises(vkml.DTypeError, match=name):
            getattr(vkml, name)(*tensors)
    elif name in NUMPY_LACKS_BOOLS:
        result = getattr(vkml, name)(*tensors)
        assert result.tolist() == tensors[0].tolist()
    else:
        check_values(row, tensors)


def special_values(dtype: object) -> list[float]:
    _, smallest, largest = FLOATS[dtype]
    positive = [0.0, smallest, 2 * smallest, 0.5, 1.0, 1.5, 2.0, 3.0, 4.25, largest / 2, largest]
    return [*positive, np.inf, *(-x for x in positive), -np.inf, np.nan]


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("name", FLOAT_NAMES)
def test_special_values(name: str, dtype: object, device: object) -> None:
    row = ROWS[name]
    if dtype == vkml.float64 and name in LESS_EXACT_IN_SCIPY:
        return
    stated = reference_of(name).stated
    flat = every_combination(row, np.array(special_values(dtype)))
    if stated is not None:
        with np.errstate(all="ignore"):
            flat = [array[~stated(*flat)] for array in flat]
    check_values(row, [vkml.tensor(array, dtype=dtype, device=device) for array in flat])


LAYOUTS = {
    "transposed": lambda tensor: tensor.reshape(16, 8).transpose(0, 1),
    "every third": lambda tensor: tensor.reshape(4, 32)[:, 1::3],
    "reversed": lambda tensor: tensor.reshape(4, 32)[::-1, ::-2],
    "offset": lambda tensor: tensor[5:77],
    "zero stride": lambda tensor: tensor[:6].reshape(6, 1).broadcast_to((6, 9)),
    "one element repeated": lambda tensor: tensor[3].broadcast_to((5, 2)),
    "permuted": lambda tensor: tensor.reshape(2, 4, 16).permute(2, 0, 1)[3:9],
}


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("name", ["add", "where", "exp", "clamp", "lt", "pow"])
def test_layouts(name: str, layout: str, device: object) -> None:
    row = ROWS[name]
    for dtype in (vkml.float32, vkml.float16, vkml.uint8):
        if dtype == vkml.uint8 and gives_float(row):
            continue
        whole = [
            vkml.tensor(
                generator(name, k).uniform(*((0, 5) if dtype == vkml.uint8 else domain), 128),
                dtype=dtype,
                device=device,
            )
            for k, domain in enumerate(row.domains)
        ]
        views = [LAYOUTS[layout](tensor) for tensor in whole]
        check_values(row, views, (layout, dtype))
        # One view beside dense operands.
        mixed = [views[0], *(view.contiguous() for view in views[1:])]
        check_values(row, mixed, (layout, dtype, "mixed"))
        pending = [LAYOUTS[layout](tensor + vkml.zeros_like(tensor)) for tensor in whole]
        check_values(row, pending, (layout, dtype, "of pending values"))


BROADCASTS = [
    ((3, 1), (1, 4)),
    ((4,), (2, 3, 4)),
    ((), (5,)),
    ((0, 1), (1, 3)),
    ((2, 1, 1, 5), (3, 4, 1)),
]


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
def test_broadcasting_of_values_and_gradients(shapes: tuple, device: object) -> None:
    random = generator(shapes)
    a = vkml.tensor(random.uniform(1, 2, shapes[0]), dtype=vkml.float32, device=device)
    b = vkml.tensor(random.uniform(1, 2, shapes[1]), dtype=vkml.float32, device=device)
    for name in ("add", "mul", "div", "maximum"):
        check_values(ROWS[name], [a, b], shapes)
    a.requires_grad_()
    b.requires_grad_()
    (a * b).sum().backward()
    wide_a, wide_b = np.broadcast_arrays(exact(a), exact(b))
    for tensor, other in ((a, wide_b), (b, wide_a)):
        expected = other
        for _ in range(other.ndim - tensor.ndim):
            expected = expected.sum(axis=0)
        for axis, extent in enumerate(tensor.shape):
            if extent == 1:
                expected = expected.sum(axis=axis, keepdims=True)
        assert_ulps(tensor.grad, expected, 16, shapes)


@pytest.mark.parametrize(
    "pair", list(itertools.combinations([*FLOATS, *INTEGERS, vkml.bool], 2)), ids=str
)
def test_promotion(pair: tuple) -> None:
    order = [
        vkml.bool,
        vkml.uint8,
        vkml.int32,
        vkml.int64,
        vkml.float16,
        vkml.float32,
        vkml.float64,
    ]
    if set(pair) == {vkml.float16, vkml.bfloat16}:
        expected = vkml.float32
    elif vkml.bfloat16 in pair:
        other = pair[0] if pair[1] == vkml.bfloat16 else pair[1]
        expected = other if other in (vkml.float32, vkml.float64) else vkml.bfloat16
    else:
        expected = max(pair, key=order.index)
    a, b = (vkml.ones(2, dtype=dtype) for dtype in pair)
    assert vkml.add(a, b).dtype == expected
    assert vkml.add(b, a).dtype == expected


def derivative(
    reference: Reference, arrays: list[np.ndarray], position: int, share: float = 1e-3
) -> np.ndarray:
    """The partial derivative of an elementwise function, by a five-point difference."""
    x = arrays[position]
    step = share * np.clip(np.abs(x), 1e-2, 1)

    def at(offset: int) -> np.ndarray:
        moved = list(arrays)
        moved[position] = x + offset * step
        with np.errstate(invalid="ignore"):  # a step out of the domain, at one of its ends
            return np.asarray(reference.function(*moved), dtype=np.float64)

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)


def is_smooth(
    reference: Reference, arrays: list[np.ndarray], position: int, tolerance: float
) -> np.ndarray:
    """Where differences can be believed: away from kinks, where steps of two lengths agree."""
    if reference.kinks is not None:
        return ~np.asarray(reference.kinks(*arrays))
    coarse = derivative(reference, arrays, position)
    fine = derivative(reference, arrays, position, 5e-4)
    with np.errstate(invalid="ignore"):
        return np.abs(coarse - fine) <= tolerance * (np.abs(fine) + 1)


@pytest.mark.parametrize("dtype", [vkml.float32, vkml.float64], ids=str)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name: str, dtype: object, device: object) -> None:
    row = ROWS[name]
    reference = reference_of(name)
    tensors = operands(row, (301,), dtype, device)
    floating = range(1 if name == "where" else 0, row.arity)
    for position in floating:
        tensors[position].requires_grad_()
    result = getattr(vkml, name)(*tensors)
    cotangent = vkml.tensor(generator(name).uniform(0.5, 1.5, 301), dtype=dtype, device=device)
    result.backward(cotangent)
    arrays = [exact(tensor) for tensor in tensors]
    tolerance = 3e-6 if dtype == vkml.float32 else 1e-8
    for position in floating:
        smooth = is_smooth(reference, arrays, position, tolerance)
        assert smooth.sum() > 150
        expected = derivative(reference, arrays, position) * exact(cotangent)
        if tensors[position].grad is None:  # an operand that only decides between pieces
            assert np.all(np.abs(expected[smooth]) < 1e-9), (name, position)
            continue
        actual = exact(tensors[position].grad)
        assert tensors[position].grad.dtype == dtype
        # Relative to what an error of one unit in the result does to the gradient.
        scale = np.abs(expected) + np.abs(exact(result)) + 1
        error = np.abs(actual - expected) / scale
        worst = int(np.argmax(np.where(smooth, error, 0)))
        assert error[worst] <= tolerance or not smooth[worst], (
            name,
            position,
            [array[worst] for array in arrays],
            actual[worst],
            expected[worst],
        )


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_second_derivatives(name: str) -> None:
    row = ROWS[name]
    reference = reference_of(name)
    tensors = operands(row, (101,), vkml.float64, vkml.cpu)
    last = row.arity - 1 if name in ("where", "clamp") else 0
    tensors[last].requires_grad_()

    def first_derivative(tensor: object) -> object:
        arguments = [*tensors[:last], tensor, *tensors[last + 1 :]]
        result = getattr(vkml, name)(*arguments)
        return vkml.grad(result.sum(), [tensor], create_graph=True)[0]

    gradient = first_derivative(tensors[last])
    x = exact(tensors[last])
    is_constant = not gradient.requires_grad
    second = 0 * x if is_constant else exact(vkml.grad(gradient.sum(), [tensors[last]])[0])

    def differences(share: float) -> np.ndarray:
        step = share * np.clip(np.abs(x), 1e-2, 1)
        ends = [
            exact(first_derivative(vkml.tensor(x + sign * step, requires_grad=True)))
            for sign in (1, -1)
        ]
        return (ends[0] - ends[1]) / (2 * step)

    expected = differences(1e-4)
    scale = np.abs(expected) + np.abs(exact(gradient)) + 1
    if reference.kinks is None:
        smooth = np.abs(expected - differences(5e-5)) / scale < 5e-6
    else:
        smooth = ~np.asarray(reference.kinks(*(exact(tensor) for tensor in tensors)))
    assert smooth.sum() > 50
    assert np.max(np.where(smooth, np.abs(second - expected) / scale, 0)) < 1e-5


@pytest.mark.parametrize("name", ["random_uniform", "random_normal"])
def test_random_numbers_follow_philox(name: str, device: object) -> None:
    index = vkml.arange(5000, device=device)
    keys = [vkml.tensor(key, dtype=vkml.int32, device=device) for key in (-123456789, 987654321)]
    result = getattr(vkml, name)(index, *keys)
    arrays = [exact(index), *(exact(key) for key in keys)]
    assert_ulps(result, reference_of(name).function(*arrays), ROWS[name].ulps, name)


@pytest.mark.parametrize("dtype", [vkml.float32, vkml.float64], ids=str)
def test_rounding_of_halves_signs_and_large_numbers(dtype: object, device: object) -> None:
    last = 22 if dtype == vkml.float32 else 51  # the highest power of 2 with halves above it
    halves = [k + 0.5 for k in range(6)] + [2.0**last + 0.5, 2.0**last + 1.5, 2.0**last + 1]
    values = [0.0, 0.3, 0.7, *halves, 2.0 ** (last + 2) + 1, 1e30, np.inf]
    array = np.array([*values, *(-value for value in values), np.nan])
    x = vkml.tensor(array, dtype=dtype, device=device)
    for name in ("round", "trunc", "floor", "ceil"):
        found, expected = exact(getattr(vkml, name)(x)), getattr(np, name)(exact(x))
        np.testing.assert_array_equal(found, expected, name)
        np.testing.assert_array_equal(np.signbit(found[:-1]), np.signbit(expected[:-1]), name)


def numbers_of_every_size(dtype: object, seed: int, device: object) -> object:
    """Finite numbers whose exponents are spread evenly, and the largest one."""
    _, smallest, largest = FLOATS[dtype]
    random = np.random.default_rng(seed)
    exponents = random.uniform(np.log2(smallest), np.log2(largest), 4000)
    values = random.choice([-1.0, 1.0], 4000) * np.exp2(exponents)
    return vkml.tensor([largest, -largest, *values], dtype=dtype, device=device)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_of_every_size(name: str, dtype: object, device: object) -> None:
    x = numbers_of_every_size(dtype, 1, device)
    check_values(ROWS[name], [x])
    x.requires_grad_()
    getattr(vkml, name)(x).sum().backward()
    wide = exact(x)
    expected = {"sin": np.cos(wide), "cos": -np.sin(wide), "tan": 1 + np.tan(wide) ** 2}[name]
    assert_ulps(x.grad, expected, 14 if name == "tan" else 3, name)


# The cosines of 320 digits' arithmetic (mpmath).
@pytest.mark.parametrize(
    ("dtype", "x", "expected"),
    [
        (vkml.float32, 16367173.0 * 2.0**72, -1.61476979824762119e-9),
        (vkml.float64, 6381956970095103.0 * 2.0**797, -4.68716592425462761e-19),
    ],
    ids=str,
)
def test_angles_next_to_a_multiple_of_half_pi(
    dtype: object, x: float, expected: float, device: object
) -> None:
    angle = vkml.tensor([1.0, x], dtype=dtype, device=device)
    assert_ulps(vkml.cos(angle)[1], np.array(expected), ROWS["cos"].ulps)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
def test_next_numbers_of_every_size(dtype: object, device: object) -> None:
    a, b = (numbers_of_every_size(dtype, seed, device) for seed in (1, 2))
    check_values(ROWS["nextafter"], [a, b])
    smallest = {vkml.float16: 2.0**-24, vkml.bfloat16: 2.0**-133}
    if dtype in smallest:  # the others' is subnormal to the device
        zero = vkml.nextafter(vkml.zeros(2, dtype=dtype, device=device), vkml.ones(2, dtype=dtype))
        assert exact(zero).tolist() == [smallest[dtype]] * 2


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("name", ["remainder", "fmod"])
def test_remainders_of_quotients_of_every_size(name: str, dtype: object, device: object) -> None:
    a, b = (numbers_of_every_size(dtype, seed, device) for seed in (1, 2))
    if device != vkml.cpu:
        # Subnormal numbers may be flushed, and software drivers have no fma of doubles: its
        # substitute takes products apart, which overflows near the end.
        b = vkml.where(b.abs() < FLOATS[dtype][1] * 2.0**30, 1, b)
        a = vkml.where(a.abs() > 2.0**990, 1, a) if dtype == vkml.float64 else a
    check_values(ROWS[name], [a, b])
    x = vkml.tensor([1e20, -1e20, 1e30, 5.5], device=device, requires_grad=True)
    y = getattr(vkml, name)(x, 3)
    np.testing.assert_array_equal(exact(y), getattr(np, name)(exact(x), 3))
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 1, 1]


OPERATORS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("name", list(OPERATORS))
def test_python_operators_with_tensors_and_numbers(name: str, device: object) -> None:
    operator = OPERATORS[name]
    arrays = [np.array([1, 5, 3], dtype=np.int32), np.array([2, 5, 1], dtype=np.int32)]
    a, b = (vkml.tensor(array, device=device) for array in arrays)
    reference = reference_of(name).function
    assert_ulps(operator(a, b), reference(*arrays), 3, name)
    assert_ulps(operator(a, 2), reference(arrays[0], np.int32(2)), 3, name)
    assert_ulps(operator(5, b), reference(np.int32(5), arrays[1]), 3, name)
    assert operator(a, 2).dtype == operator(a, b).dtype
