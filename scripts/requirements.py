"""Prints the Python requirements of the named groups, one a line, as pyproject.toml states them.

Groups: `build` (what compiles the module), `runtime` (what an installed vkML depends on), and each
name under [project.optional-dependencies].
"""

import pathlib
import sys

import tomllib


def main(groups: list[str]) -> None:
    """Print the requirements of `groups`; an unknown group is an error."""
    path = pathlib.Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(path.read_text())
    known = dict(project["project"]["optional-dependencies"])
    known["build"] = project["build-system"]["requires"]
    known["runtime"] = project["project"]["dependencies"]
    for group in groups:
        if group not in known:
            sys.exit(f"requirements.py: no group {group!r}. Groups: {', '.join(sorted(known))}")
        print("\n".join(known[group]))


if __name__ == "__main__":
    main(sys.argv[1:])
