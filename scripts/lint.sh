#!/usr/bin/env bash
# Checks the sources without changing them: clang-format, ruff, mypy; with --tidy, clang-tidy too.
#
#   scripts/lint.sh [--tidy [file.cpp...]]     clang-tidy over the files named, or over all of them
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

scripts/setup.sh lint || exit 1
status=0
check() {
  local name=$1
  shift
  if "$@"; then
    echo "lint: $name: clean"
  else
    echo "lint: $name: FAILED" >&2
    status=1
  fi
}

mapfile -t cpp < <(git ls-files '*.cpp' '*.h')
check clang-format .venv/bin/clang-format --dry-run -Werror "${cpp[@]}"
check "ruff check" .venv/bin/ruff check --quiet .
check "ruff format" .venv/bin/ruff format --check --quiet .
# The stub of the native module lies in the build tree.
scripts/build.sh vkml_stub >/dev/null || exit 1
check mypy env MYPYPATH="$PWD/build/release/python" .venv/bin/mypy

if [[ "${1:-}" == --tidy ]]; then
  shift
  files=("$@")
  if [[ $# -eq 0 ]]; then mapfile -t files < <(git ls-files 'src/*.cpp' 'bindings/*.cpp'); fi
  # The compilation database may be GCC's: its own warning options are not clang's concern.
  tidy() {
    printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" .venv/bin/clang-tidy --quiet \
      -p build/release --extra-arg=-Wno-unknown-warning-option
  }
  check clang-tidy tidy
fi
exit $status
