"""VKML_VERIFY=1: every plan of these suites is checked for bytes read before they are written."""

import os
import subprocess
import sys
from pathlib import Path

import vkml

HERE = Path(__file__).parent
SUITES = ["test_training_loop.py", "test_aliases.py", "test_writes.py"]


def test_plans_of_training_and_of_writes_are_sound():
    result = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-x",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:xdist",
            ),
            *(str(HERE / suite) for suite in SUITES),
        ],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(vkml.__file__).parents[1]),
            "VKML_VERIFY": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-4000:]
    assert " passed" in result.stdout
