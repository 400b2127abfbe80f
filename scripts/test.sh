#!/usr/bin/env bash
# Runs every test: installs what is missing, builds, runs the C++ tests (ctest) and the Python tests
# (pytest), and closes with the totals. Status 0 only when tests ran and none failed.
#
#   scripts/test.sh [pytest option...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh test
scripts/build.sh

results=$PWD/build/test-results
rm -rf "$results"
mkdir -p "$results"
jobs=$(nproc)
# Test processes share the cores: threads that spin while they wait would starve each other.
export OMP_WAIT_POLICY=passive

status=0
ctest --test-dir build/release --parallel "$jobs" --timeout 300 --no-tests=error \
  --output-on-failure --progress --output-junit "$results/cpp.xml" || status=1
PYTHONPATH="$PWD/build/release/python" .venv/bin/python -m pytest --numprocesses "$jobs" \
  --junit-xml "$results/python.xml" "$@" || status=1

.venv/bin/python scripts/totals.py "$results/cpp.xml" "$results/python.xml" || status=1
exit $status
