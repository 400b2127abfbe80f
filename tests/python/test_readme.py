"""What the README prints works as it stands there."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language in the README."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("language", ["python", "cpp"])
def test_each_example_has_ten_lines(language):
    (code,) = blocks(language)
    assert sum(line != "" for line in code.splitlines()) == 10


def test_the_python_example_learns():
    (code,) = blocks("python")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    loss = float(re.search(r"loss ([0-9.]+)", run.stdout)[1])
    assert loss < 0.01


def test_the_cpp_example_is_the_one_that_is_built_against_an_installed_vkml():
    (code,) = blocks("cpp")
    assert code in (ROOT / "tests/package/main.cpp").read_text()
