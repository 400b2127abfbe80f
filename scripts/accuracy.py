"""Measures the error of every operator on a device, and writes docs/accuracy.md.

    python scripts/accuracy.py measure cpu=cpu lavapipe=vulkan:0    measures devices, then writes
    python scripts/accuracy.py write                                writes from what was measured

Operators, references, domains and bounds are those of the tests: the rows of docs/operators.md, the
cases of tests/python/structural_cases.py and those of tests/python/python_cases.py, whose reference
is PyTorch. What was measured is in docs/measured_errors.csv, a column for each kind of device; a
test compares the page with all of them.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import re
import sys
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import vkml  # noqa: E402
from case import Case  # noqa: E402
from checking import exact, wide  # noqa: E402
from composite_cases import COMPOSITE_CASES, RECURRENT_CASES  # noqa: E402
from elementwise_references import StatedRow, stated_rows  # noqa: E402
from function_case import FLOATS, FunctionCase  # noqa: E402
from python_cases import PYTHON_CASES, SPACES  # noqa: E402
from structural_cases import CASES  # noqa: E402
from test_elementwise import expected_of, operands, takes_floats  # noqa: E402

MEASURED = ROOT / "docs" / "measured_errors.csv"
PAGE = ROOT / "docs" / "accuracy.md"
FUNCTION_CASES = [*PYTHON_CASES, *COMPOSITE_CASES, *RECURRENT_CASES]
MACHINE = "(machine)"  # the row of the file that names what was measured on
COLUMNS = ("cpu", "lavapipe", "h200")
POINTS = 20001
DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool")

HEAD = """# Accuracy

Written by `scripts/accuracy.py` from the rows of the elementwise table, the cases of
`tests/python/structural_cases.py` and `tests/python/python_cases.py`, and
`docs/measured_errors.csv`; a test compares it with them.

Bounds hold on every device, and are what the tests check. Beside them is the largest error that
was measured in float32 against a reference in double precision, - where nobody has measured, on

{machines}

"""
ELEMENTWISE = """## Elementwise operators

Errors in units of the last place, at {points} points of the domain.

| operator | formula | domain | dtypes | gradient | bound | {columns} |
|---|---|---|---|---|---|{dashes}|
"""
STRUCTURAL = """
## Other operators

Errors in units of 2^-23 times the largest magnitude in the result, or times 1 if that is smaller;
0 is exact. Bounds are those of the cases, whose lines have up to a few hundred elements; sums of
more grow with their length.

| operator | what it does | dtypes | gradient | bound | {columns} |
|---|---|---|---|---|{dashes}|
"""
FUNCTIONS = """
## Functions of vkml.{space}

Errors in the same units, against PyTorch in double precision. Bounds hold for value, gradient and
second derivative; dtypes are those of floating operands.

| function | what it does | dtypes | gradient | bound | {columns} |
|---|---|---|---|---|{dashes}|
"""
COMPOSITES = """
## Functions that are a few lines of others

Those of `vkml.composites`, at the top of the package: errors in the same units, against PyTorch in
double precision.

| function | what it does | dtypes | gradient | bound | {columns} |
|---|---|---|---|---|{dashes}|
"""
RECURRENT = """
## Recurrent layers

Two directions, five steps, against PyTorch's layers in double precision with the same parameters.

| layer | what it does | dtypes | gradient | bound | {columns} |
|---|---|---|---|---|{dashes}|
"""
DRAWS = """
## Random operators

Draws are the same on every device for one seed but for the last place of functions of them.
`tests/python/test_distributions.py` compares moments and quantiles with those of the distribution.

| function | what it draws | gradient |
|---|---|---|
"""
NO_GRADIENT = "none"
RANDOM = dict.fromkeys(
    (
        *("bernoulli", "exponential", "gamma", "gumbel", "multinomial", "normal", "rand"),
        *("rand_like", "randint", "randint_like", "randn", "randn_like", "randperm"),
        *("truncated_normal", "uniform"),
    ),
    NO_GRADIENT,
)
RANDOM |= {"dropout": "yes: of what is kept", "normal": "yes: of a mean and a deviation in tensors"}


def integer_operands(row: StatedRow, device: object) -> list:
    """Whole numbers of a row's domain, for operators that take no floats."""
    generator = np.random.default_rng(0)
    return [
        vkml.tensor(generator.integers(int(low), int(high), POINTS), device=device).to(vkml.int32)
        for low, high in row.domains
    ]


def elementwise_error(row: StatedRow, device: object) -> float:
    """The largest error at points of the domain, in units of the last place of float32."""
    if takes_floats(row):
        tensors = operands(row, (POINTS,), vkml.float32, device)
    else:
        tensors = integer_operands(row, device)
    found = exact(getattr(vkml, row.name)(*tensors))
    expected = expected_of(row, tensors)
    if not np.issubdtype(expected.dtype, np.floating):
        return 0.0 if np.array_equal(found, expected.astype(found.dtype)) else np.inf
    smallest = 2.0**-126
    exponent = np.floor(np.log2(np.maximum(np.abs(expected), smallest)))
    # Devices may take what is below the smallest normal number for 0.
    near_zero = np.abs(expected) < 2 * smallest
    errors = np.abs(found - expected) / np.exp2(exponent - 23)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected)) | near_zero
    return float(np.max(np.where(same, 0, errors), initial=0.0))


def structural_error(case: Case, device: object) -> float:
    """The largest error of a case, in units of the largest magnitude of its result."""
    found = exact(case.function(*(vkml.tensor(array, device=device) for array in case.arrays)))
    expected = np.asarray(case.reference(*(wide(array) for array in case.arrays)))
    return error_in_units(found, expected)


def error_in_units(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, in units of 2^-23 times the largest magnitude, or times 1."""
    if found.size == 0:
        return 0.0
    difference = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    difference = np.where(found == expected, 0, difference)
    return float(np.max(difference) / (2.0**-23 * max(1.0, float(np.max(np.abs(expected))))))


def function_error(case: FunctionCase, device: object) -> float:
    """The largest error of the values of a function, in the units of `structural_error`."""
    torch = importlib.import_module("torch")
    found = case.function(*(vkml.tensor(array, device=device) for array in case.arrays))
    expected = case.expected(*(torch.tensor(wide(array)) for array in case.arrays))
    if isinstance(found, vkml.Tensor):
        found, expected = [found], [expected]
    return max(
        error_in_units(exact(mine), theirs.numpy())
        for mine, theirs in zip(found, expected, strict=True)
    )


def rounded(error: float) -> str:
    """Two digits, rounded up."""
    if error == 0:
        return "0"
    step = 10.0 ** (np.floor(np.log10(error)) - 1)
    return f"{np.ceil(error / step) * step:.3g}"


def measure(device: object) -> dict[str, str]:
    """The largest error of each operator on a device."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {row.name: elementwise_error(row, device) for row in stated_rows()}
        for case in CASES:
            error = structural_error(case, device)
            found[case.name] = max(found.get(case.name, 0.0), error)
        for case in FUNCTION_CASES:
            if case.on_cpu_alone and device != vkml.cpu:
                continue
            error = function_error(case, device)
            found[case.key] = max(found.get(case.key, 0.0), error)
    return {name: rounded(error) for name, error in found.items()}


def read_measured() -> dict[str, dict[str, str]]:
    """For each operator, its error by kind of device."""
    if not MEASURED.exists():
        return {}
    with MEASURED.open(newline="") as file:
        return {row.pop("operator"): row for row in csv.DictReader(file)}


def write_measured(found: dict[str, dict[str, str]]) -> None:
    """Writes the file of errors, the operators in their order."""
    names = [MACHINE, *dict.fromkeys([row.name for row in stated_rows()])]
    names += dict.fromkeys(case.name for case in CASES)
    names += [key for space in (*SPACES, "", "nn") for key in keys_of(space)]
    with MEASURED.open("w", newline="") as file:
        writer = csv.DictWriter(file, ("operator", *COLUMNS), lineterminator="\n")
        writer.writeheader()
        for name in dict.fromkeys(names):
            writer.writerow({"operator": name, **found.get(name, {})})


def keys_of(space: str) -> list[str]:
    """The functions of a module in the order of their names, with the module."""
    return sorted({case.key for case in FUNCTION_CASES if case.space == space})


def dtypes_of(function: object, arrays: list, among: tuple[str, ...] = DTYPES) -> str:
    """The dtypes that an operator takes in place of its floating operands, or else its first."""
    if not arrays:
        return "by argument"
    if not any(np.issubdtype(array.dtype, np.floating) for array in arrays):
        arrays = [arrays[0].astype(np.float32), *arrays[1:]]
    taken = []
    for name in among:
        dtype = getattr(vkml, name)
        tensors = [
            vkml.tensor(array, device=vkml.cpu).to(dtype)
            if np.issubdtype(array.dtype, np.floating)
            else vkml.tensor(array, device=vkml.cpu)
            for array in arrays
        ]
        try:
            function(*tensors)
        except vkml.VkmlError:
            continue
        taken.append(name)
    return "all" if len(taken) == len(DTYPES) else grouped(taken)


def grouped(names: list[str]) -> str:
    """Names of dtypes, with words for those that go together."""
    text = ", ".join(names)
    for group, word in (
        ("float64, float32, float16, bfloat16", "floats"),
        ("int64, int32, uint8", "integers"),
    ):
        text = text.replace(group, word)
    return text


def cell(text: str) -> str:
    """Text that may stand in a table."""
    return text.replace("|", "\\|")


def meanings() -> dict[str, tuple[str, str]]:
    """The formula and the domain of each elementwise operator, from docs/operators.md."""
    found = {}
    table, _, _ = (ROOT / "docs" / "operators.md").read_text().partition("# Other operators")
    for line in table.splitlines():
        if line.startswith("| `"):
            cells = line.replace("\\|", "\0").split("|")[1:-1]
            texts = [part.strip().replace("\0", "|") for part in cells]
            found[texts[0].split("(")[0].strip("`")] = (texts[1], texts[4])
    return found


def first_sentence(name: str) -> str:
    """What a docstring begins with, past the signatures that nanobind writes."""
    owner = {"tensor.unfold": vkml.Tensor.unfold, "tensor.repeat": vkml.Tensor.repeat}
    owner |= {"getitem": "Elements, slices and masks: `x[...]`."}
    owner |= {"setitem": "Assignment to elements, slices and masks: `x[...] = v`."}
    attention = "scaled_dot_product_attention"  # native, and bound under a private name
    owner |= {attention: getattr(vkml.nn.functional, attention)}
    module, _, function = name.rpartition(".")
    thing = owner.get(name) or getattr(
        importlib.import_module(f"vkml.{module}".rstrip(".")), function
    )
    if isinstance(thing, str):
        return thing
    text = inspect.getdoc(thing) or ""
    # Of overloads, the last one's text.
    text = re.split(r"\n\d+\. ``.*``\n", text)[-1]
    first, _, rest = text.partition("\n")
    text = rest if "->" in first and "(" in first else text
    sentence = " ".join(text.strip().split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", sentence)[0]


def errors_of(name: str, measured: dict[str, dict[str, str]]) -> str:
    """The cells of an operator's errors."""
    return " | ".join(measured.get(name, {}).get(column) or "-" for column in COLUMNS)


def page() -> str:
    """The text of docs/accuracy.md."""
    measured = read_measured()
    machines = measured[MACHINE]
    columns, dashes = " | ".join(COLUMNS), "|".join(["---"] * len(COLUMNS))
    listed = "\n".join(f"- `{column}`: {machines[column]}" for column in COLUMNS)
    text = HEAD.format(machines=listed)
    text += ELEMENTWISE.format(points=POINTS, columns=columns, dashes=dashes)
    texts = meanings()
    for row in stated_rows():
        meaning, domain = texts[row.name]
        ones = [np.ones(1, np.float32)] * row.arity
        taken = dtypes_of(getattr(vkml, row.name), ones)
        gradient = "yes" if row.differentiable else "none"
        errors = errors_of(row.name, measured)
        text += f"| `{row.name}` | {cell(meaning)} | {domain} | {taken} | {gradient} | "
        text += f"{row.ulps:g} | {errors} |\n"
    text += STRUCTURAL.format(columns=columns, dashes=dashes)
    for name in dict.fromkeys(case.name for case in CASES):
        cases = [case for case in CASES if case.name == name]
        taken = dtypes_of(cases[0].function, list(cases[0].arrays))
        gradient = "yes" if any(case.gradient for case in cases) else "none"
        errors = errors_of(name, measured)
        bound = max(case.units for case in cases)
        text += f"| `{name}` | {cell(first_sentence(name))} | {taken} | {gradient} | {bound:g} | "
        text += f"{errors} |\n"
    for space in SPACES:
        text += FUNCTIONS.format(space=space, columns=columns, dashes=dashes)
        text += function_rows(space, measured)
    for space, head in (("", COMPOSITES), ("nn", RECURRENT)):
        text += head.format(columns=columns, dashes=dashes) + function_rows(space, measured)
    return text + DRAWS + random_rows()


def dtypes_of_function(cases: list[FunctionCase]) -> str:
    """Those of floating operands that are tested; at the top and of layers, what is taken."""
    if cases[0].space in ("", "nn"):
        among = DTYPES if cases[0].space == "" else FLOATS
        return dtypes_of(cases[0].function, list(cases[0].arrays), among)
    tested = {dtype for case in cases for dtype in case.dtypes}
    return grouped([dtype for dtype in DTYPES if dtype in tested])


def random_rows() -> str:
    """The lines of the operators that draw."""
    return "".join(
        f"| `{name}` | {cell(first_sentence(name))} | {gradient} |\n"
        for name, gradient in sorted(RANDOM.items())
    )


def function_rows(space: str, measured: dict[str, dict[str, str]]) -> str:
    """The lines of the functions of a module."""
    text = ""
    for key in keys_of(space):
        cases = [case for case in FUNCTION_CASES if case.key == key]
        taken = dtypes_of_function(cases)
        reasons = [case.no_gradient for case in cases if case.no_gradient]
        gradient = "yes" if len(reasons) < len(cases) else f"none: {reasons[0]}"
        bound = max(case.units for case in cases)
        name = key.removeprefix(f"{space or 'vkml'}.")
        meaning = cell(first_sentence(key.removeprefix("vkml.")))
        text += f"| `{name}` | {meaning} | {taken} | {gradient} | {bound:g} | "
        text += f"{errors_of(key, measured)} |\n"
    return text


def name_of(device: object) -> str:
    """What a device calls itself."""
    return next(info.name for info in vkml.devices() if info.device == device)


def main(arguments: list[str]) -> None:
    """Runs the command line."""
    if arguments and arguments[0] == "measure":
        found = read_measured()
        for argument in arguments[1:]:
            column, _, device = argument.partition("=")
            errors = measure(vkml.device(device))
            errors[MACHINE] = name_of(vkml.device(device))
            for name, error in errors.items():
                found.setdefault(name, {})[column] = error
        write_measured(found)
    elif arguments != ["write"]:
        sys.exit(__doc__)
    PAGE.write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
