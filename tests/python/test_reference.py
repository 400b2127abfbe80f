"""The reference backend itself against NumPy: the operator tests, run once more on it.

The backend is chosen when the process starts, so they run in a process of their own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import vkml

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    "file",
    ["test_elementwise.py", "test_operators.py", "test_cases.py", "test_cases_of_sizes.py"],
)
def test_on_the_reference(file: str) -> None:
    if os.environ.get("VKML_REFERENCE") == "1":
        pytest.skip("this is that process")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        file,
        "-k",
        "not vulkan",
    ]
    environment = {**os.environ, "VKML_REFERENCE": "1"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    result = subprocess.run(
        command, cwd=HERE, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stdout[-4000:]
    assert " passed" in result.stdout


def test_it_is_never_chosen_silently() -> None:
    if os.environ.get("VKML_REFERENCE") == "1":
        assert vkml.devices()[0].name == "reference"
    else:
        assert vkml.devices()[0].name != "reference"
