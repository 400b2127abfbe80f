"""`docs/environment.md` lists the environment variables that the sources read, and no others."""

import pathlib
import re

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
