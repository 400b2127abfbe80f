#!/usr/bin/env bash
# Tests the Python package as users get it: builds the sdist, a wheel from nothing but the sdist,
# installs that into a fresh environment without NumPy or anything else, and computes there.
#
#   scripts/package_test.sh [folder]     everything it makes lies there; by default build/package
#
# No part of scripts/test.sh: it compiles everything once more (minutes; with a warm ccache, less).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh
python=$PWD/.venv/bin/python
folder=$(realpath -m "${1:-build/package}")
rm -rf "$folder"
mkdir -p "$folder/source" "$folder/wheel"

say() { printf 'package: %s\n' "$*"; }

say "building the sdist"
"$python" - "$folder" <<'PYTHON'
import sys
from scikit_build_core.build import build_sdist

build_sdist(sys.argv[1])
PYTHON
sdist=$(ls "$folder"/vkml-*.tar.gz)
tar --extract --gzip --file "$sdist" --directory "$folder/source" --strip-components 1

say "building the wheel from $(basename "$sdist")"
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$folder/source CCACHE_NOHASHDIR=1
fi
# What it needs is in .venv. Warnings are errors, as in the builds whose objects ccache holds.
"$python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps \
  --config-settings=cmake.define.VKML_WARNINGS_AS_ERRORS=ON \
  --wheel-dir "$folder/wheel" "$folder/source"

say "installing $(basename "$folder"/wheel/*.whl) into an empty environment"
"$python" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index \
  "$folder"/wheel/*.whl
cd "$folder"  # away from python/vkml
env -u PYTHONPATH "$folder/venv/bin/python" - <<'PYTHON'
import importlib.metadata
import importlib.util
import pathlib
import sys

import vkml
from vkml import nn, optim

assert pathlib.Path(vkml.__file__).is_relative_to(sys.prefix), vkml.__file__
assert importlib.metadata.version("vkml") == vkml.__version__
assert importlib.util.find_spec("numpy") is None
assert (vkml.tensor([1.0, 2.0, 3.0]) + 1).sum().item() == 9.0
layer = nn.Linear(2, 1)
optimizer = optim.SGD(layer.parameters(), lr=0.1)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = ((layer(vkml.ones(4, 2)) - 1) ** 2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.1 * losses[0], losses
parts = pathlib.Path(vkml.__file__).parent
assert (parts / "py.typed").exists() and (parts / "_vkml.pyi").exists()
print(f"package: vkml {vkml.__version__} works without NumPy")
PYTHON
