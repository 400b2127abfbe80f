"""`docs/environment.md` lists the variables that the sources read, and no others; what they do."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import vkml

ROOT = pathlib.Path(__file__).parents[2]


def variables_read() -> set[str]:
    """Every "VKML_..." in a string of the sources."""
    files = [
        file
        for folder in ("src", "bindings", "python")
        for file in (ROOT / folder).rglob("*")
        if file.suffix in {".cpp", ".h", ".py"}
    ]
    return {
        name for file in files for name in re.findall(r"[\"'](VKML_[A-Z_]+)[\"']", file.read_text())
    }


def test_every_variable_is_documented_and_read():
    documented = set(
        re.findall(
            r"^\| `(VKML_[A-Z_]+)`", (ROOT / "docs/environment.md").read_text(), re.MULTILINE
        )
    )
    assert documented == variables_read()


def messages(code: str, **environment: str) -> str:
    """What a program with these variables says on stderr."""
    path = str(pathlib.Path(vkml.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stderr


RECORDS_AGAIN = """
import vkml
double = vkml.jit(lambda x: x * 2)
for extent in (2, 2, 3):
    double(vkml.ones(extent))
"""


def test_debugging_says_why_a_function_is_recorded_again():
    assert messages(RECORDS_AGAIN, VKML_DEBUG="0") == ""
    said = messages(RECORDS_AGAIN, VKML_DEBUG="1")
    assert said.count("recorded again") == 1
    assert "(3,)" in said
    assert "(2,)" in said


@pytest.mark.skipif(len(vkml.devices()) == 1, reason="there is no Vulkan device")
def test_debugging_says_that_a_pipeline_cache_could_not_be_written(tmp_path):
    (tmp_path / "vkml").write_text("a file where the folder should be")
    code = "import vkml; (vkml.rand(3, device='vulkan') * 2).tolist(); vkml.synchronize()"
    assert messages(code, XDG_CACHE_HOME=str(tmp_path), VKML_DEBUG="0") == ""
    assert "pipeline cache" in messages(code, XDG_CACHE_HOME=str(tmp_path), VKML_DEBUG="1")


RUNS_A_KERNEL = """
import vkml
x = vkml.ones(1000, device={device!r}).realize()
(x * 2 + x).realize()
vkml.synchronize()
"""


def test_debugging_prints_each_run(device):
    code = RUNS_A_KERNEL.format(device=str(device))
    assert messages(code, VKML_DEBUG="1") == ""
    lines = messages(code, VKML_DEBUG="2").splitlines()
    assert sum(f" on {device}: 1 kernels, " in line for line in lines) == 2
    assert " GB/s " in lines[-1]
    assert lines[-1].endswith("region mul+add [1, 1, 1, 1000]")


ADDS_MANY = """
import vkml
tensors = [vkml.full((3,), float(i), device=vkml.vulkan) for i in range(20)]
for tensor in tensors:
    tensor.realize()
total = tensors[0]
for tensor in tensors[1:]:
    total = total * 1.5 + tensor
index = vkml.tensor([2, 0], device=vkml.vulkan)
expected = 0.0
for i in range(20):
    expected = expected * 1.5 + i
assert abs((total[index] / expected - 1).numpy()).max() < 1e-6
"""


@pytest.mark.skipif(len(vkml.devices()) == 1, reason="there is no Vulkan device")
def test_kernels_keep_to_the_least_devices_buffers():
    messages(ADDS_MANY, VKML_MIN_SPEC="1")
