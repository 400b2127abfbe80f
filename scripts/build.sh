#!/usr/bin/env bash
# Configures (when needed) and builds build/release; scripts/setup.sh has to have run.
#
#   scripts/build.sh [target...]     everything, or the targets named: _vkml is the Python module
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=build/release
options=("-DPython_EXECUTABLE=$PWD/.venv/bin/python")
if command -v ccache >/dev/null; then
  options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # a clone in another folder finds what this one built
fi

# Ninja configures again by itself when a CMake file changes, but not for what is only named here.
key=$(cat CMakePresets.json .venv/.vkml/version <(printf '%s\n' "$PWD" "${CXX:-}" "${options[@]}") |
  sha256sum)
if [[ ! -f $folder/build.ninja || "$(cat $folder/.configured 2>/dev/null)" != "$key" ]]; then
  log=$(mktemp)
  if ! cmake --fresh --preset release "${options[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
  rm -f "$log"
  echo "$key" >$folder/.configured
fi

targets=()
if [[ $# -gt 0 ]]; then targets=(--target "$@"); fi
cmake --build $folder "${targets[@]}"
