#!/usr/bin/env bash
# Trains a classifier on Fashion-MNIST from a fresh checkout: installs what is missing, builds, trains.
# Options go to the training program; --help lists them.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/setup.sh"
"$root/scripts/build.sh" _vkml
export PYTHONPATH="$root/build/release/python${PYTHONPATH:+:$PYTHONPATH}"
exec "$root/.venv/bin/python" "$root/examples/python/train_fashion_mnist.py" "$@"
