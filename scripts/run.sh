#!/usr/bin/env bash
# Trains a classifier on Fashion-MNIST from a fresh checkout: installs what is missing, builds, trains.
# Options go to the training program; --help lists them.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Asking what there is to say installs nothing, and builds nothing.
for option in "$@"; do
  if [[ $option == --help || $option == -h ]] && command -v python3 >/dev/null; then
    exec python3 "$root/examples/python/training_options.py" --help
  fi
done

groups=()
# A software driver is used if asked for, and installed then too.
if [[ " $* " == *" --device vulkan"* || " $* " == *" --device=vulkan"* ]]; then groups+=(driver); fi
"$root/scripts/setup.sh" "${groups[@]}"
"$root/scripts/build.sh" _vkml
export PYTHONPATH="$root/build/release/python${PYTHONPATH:+:$PYTHONPATH}"
exec "$root/.venv/bin/python" "$root/examples/python/train_fashion_mnist.py" "$@"
