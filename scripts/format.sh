#!/usr/bin/env bash
# Formats all sources in place, as scripts/lint.sh wants them, and writes docs/operators.md again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh lint
git ls-files -z '*.cpp' '*.h' | xargs -0 .venv/bin/clang-format -i
.venv/bin/ruff check --quiet --fix .
.venv/bin/ruff format --quiet .
scripts/build.sh operator_table
build/release/tests/cpp/operator_table >docs/operators.md
