"""Plain PyTorch scripts run with only their import lines changed, and reach the same losses.

The scripts in `scripts/` are PyTorch's. Each is run here with its import lines changed, from
weights that NumPy draws, and its printed numbers are compared with PyTorch's: live where PyTorch is
installed, else as recorded below (PyTorch 2.13.0, CPU). `python test_scripts.py` prints the record.
"""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent / "scripts"

# Parameters of each script's model: name and shape, in the order in which they are drawn.
WEIGHTS = {
    "mlp": {
        "0.weight": (32, 2),
        "0.bias": (32,),
        "2.weight": (32, 32),
        "2.bias": (32,),
        "4.weight": (3, 32),
        "4.bias": (3,),
    },
    "cnn": {
        "conv1.weight": (8, 1, 3, 3),
        "conv2.weight": (16, 8, 3, 3),
        "conv2.bias": (16,),
        "fc.weight": (4, 64),
        "fc.bias": (4,),
    },
    "regression": {
        "frequency": (12,),
        "phase": (12,),
        "mix.weight": (1, 12),
        "offset": (1,),
    },
}

# What PyTorch printed.
RECORDED = {
    "mlp": [
        1.129570345,
        1.002414803,
        0.862497871,
        0.845847413,
        0.887746058,
        0.867674236,
        0.851423909,
        0.823631667,
        0.812466127,
        0.783316592,
        0.770017261,
        0.785341941,
        0.666666687,
    ],
    "cnn": [
        1.411303997,
        1.381486297,
        1.34417212,
        1.316983223,
        1.277504921,
        1.251416922,
        1.215698957,
        1.189109325,
        1.144035459,
        1.110769629,
        1.07586062,
        1.036360741,
        1.142643213,
        0.916666667,
    ],
    "regression": [
        0.750905097,
        0.595633984,
        0.474269271,
        0.383099526,
        0.309957564,
        0.244376451,
        0.184628129,
        0.132908866,
        0.091255292,
        0.060467396,
        0.040355418,
        0.029816303,
        0.026717801,
        0.028234366,
        0.03161208,
        0.034792393,
        0.036605693,
        0.036657397,
        0.035102934,
        0.032410707,
        0.029141266,
        0.025775122,
        0.022623366,
        0.019825118,
        0.017399296,
        0.015306635,
        0.013495846,
        0.011926288,
        0.010572139,
        0.009417532,
        0.008449723,
        0.007654908,
        0.007016853,
        0.00651743,
        0.006137949,
        0.005860262,
        0.00566729,
        0.005543083,
        0.005472516,
        0.00544071,
    ],
}

IMPORTS = [
    (r"^import torch$", "import vkml as torch"),
    (r"^import torch\.nn as nn$", "import vkml.nn as nn"),
    (r"^import torch\.nn\.functional as F$", "import vkml.nn.functional as F"),
    (r"^from torch import (.*)$", r"from vkml import \1"),
    (r"^from torch\.utils\.data import (.*)$", r"from vkml.data import \1"),
]


def write_weights(name: str, path: Path) -> None:
    """Draws a script's initial weights, uniform on +-1 / sqrt(inputs)."""
    generator = np.random.RandomState(0)
    arrays = {}
    for parameter, shape in WEIGHTS[name].items():
        bound = 1 / np.sqrt(max(np.prod(shape[1:]), 1))
        arrays[parameter] = generator.uniform(-bound, bound, shape).astype(np.float32)
    if name == "regression":
        arrays["frequency"] = np.arange(1, 13, dtype=np.float32) / 2
    np.savez(path, **arrays)


def torch_losses(name: str, weights: Path) -> list[float]:
    """What the script prints under PyTorch, in a process of its own."""
    printed = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py", weights],
        check=True,
        capture_output=True,
        text=True,
    )
    return [float(line) for line in printed.stdout.split()]


def expected_losses(name: str, weights: Path) -> list[float]:
    """PyTorch's numbers, live or as recorded."""
    if importlib.util.find_spec("torch") is None:
        return RECORDED[name]
    return torch_losses(name, weights)


@pytest.mark.parametrize("name", sorted(WEIGHTS))
def test_script_with_changed_imports_reaches_the_same_losses(
    name, device, tmp_path, capsys, monkeypatch
):
    weights = tmp_path / "weights.npz"
    write_weights(name, weights)
    expected = expected_losses(name, weights)
    source = (FOLDER / f"{name}.py").read_text()
    for pattern, replacement in IMPORTS:
        source = re.sub(pattern, replacement, source, flags=re.MULTILINE)
    monkeypatch.setattr(sys, "argv", [name, str(weights)])

    exec(compile(source, f"{name}.py", "exec"), {"__name__": "__main__"})

    printed = [float(line) for line in capsys.readouterr().out.split()]
    # Rounding differs from the first step on, and training spreads it.
    np.testing.assert_allclose(printed, expected, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(printed[:3], expected[:3], rtol=2e-5)


@pytest.mark.parametrize("name", sorted(WEIGHTS))
def test_record_is_what_pytorch_prints(name, tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    weights = tmp_path / "weights.npz"
    write_weights(name, weights)
    np.testing.assert_allclose(RECORDED[name], torch_losses(name, weights), rtol=1e-3, atol=1e-6)


if __name__ == "__main__":
    for script in WEIGHTS:
        file = Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp") / f"{script}.npz"
        write_weights(script, file)
        print(f'    "{script}": {torch_losses(script, file)},')
