#!/usr/bin/env bash
# Installs what vkML needs and this machine lacks: system packages through apt, Python packages into
# .venv. Says what it installs; takes a fraction of a second when everything is there.
#
#   scripts/setup.sh [driver] [test] [peers] [lint]
#
# Always: what building and the examples need. driver: a software Vulkan driver. test: what the tests
# need, that driver and the validation layer among it. peers: what benchmarks compare with (PyTorch).
# lint: the checkers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

system=(ca-certificates cmake g++ libfmt-dev libgtest-dev libhwy-dev libvulkan-dev libxxhash-dev
  ninja-build python3 python3-dev python3-venv)
optional=(dataset-fashion-mnist)
groups=(build runtime examples)
for group in "$@"; do
  case "$group" in
    driver)
      system+=(mesa-vulkan-drivers)
      continue
      ;;
    test) system+=(mesa-vulkan-drivers vulkan-validationlayers zlib1g-dev) ;;
    peers) system+=(libbenchmark-dev) ;;
    lint) ;;
    *)
      echo "setup.sh: unknown group '$group'. Groups: driver, test, peers, lint" >&2
      exit 2
      ;;
  esac
  groups+=("$group")
done

say() { printf 'setup: %s\n' "$*"; }

is_installed() {
  [[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "this needs root, and sudo is not here. Run as root: $*" >&2
    exit 1
  fi
}

install_system_packages() {
  local package missing=() wanted=()
  if ! command -v apt-get >/dev/null; then
    say "apt-get is not here. Make sure that these are installed: ${system[*]}"
    return
  fi
  for package in "${system[@]}"; do
    is_installed "$package" || missing+=("$package")
  done
  for package in "${optional[@]}"; do
    is_installed "$package" || wanted+=("$package")
  done
  if [[ ${#missing[@]} -eq 0 && ${#wanted[@]} -eq 0 ]]; then return; fi

  # Only packages that exist here can be asked for again and again without asking the archive.
  local declined=build/.setup/declined
  if [[ ${#missing[@]} -eq 0 && -f $declined && "$(<"$declined")" == "${wanted[*]}" ]]; then return; fi

  say "installing with apt: ${missing[*]} ${wanted[*]}"
  as_root apt-get update -qq
  if [[ ${#missing[@]} -gt 0 ]]; then
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      "${missing[@]}" >/dev/null
  fi
  for package in "${wanted[@]}"; do
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
      --no-install-recommends "$package" >/dev/null; then
      say "$package is not available here; go on without it"
      mkdir -p build/.setup
      echo "${wanted[*]}" >"$declined"
    fi
  done
}

install_python_packages() {
  local python=/usr/bin/python3 version missing=() group stamp
  [[ -x $python ]] || python=$(command -v python3)
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if [[ ! -x .venv/bin/python || "$(cat .venv/.vkml/version 2>/dev/null)" != "$version" ]]; then
    say "making .venv (Python $version)"
    "$python" -m venv --clear .venv
    mkdir -p .venv/.vkml
    echo "$version" >.venv/.vkml/version
  fi

  # A group is asked for again only when pyproject.toml has changed since it was installed.
  stamp=$(sha256sum <pyproject.toml)
  for group in "${groups[@]}"; do
    [[ "$(cat ".venv/.vkml/$group" 2>/dev/null)" == "$stamp" ]] || missing+=("$group")
  done
  if [[ ${#missing[@]} -eq 0 ]]; then return; fi
  say "installing Python packages into .venv: ${missing[*]}"
  .venv/bin/python scripts/requirements.py "${missing[@]}" >.venv/.vkml/requirements.txt
  .venv/bin/python -m pip install -qq --disable-pip-version-check \
    --requirement .venv/.vkml/requirements.txt
  for group in "${missing[@]}"; do echo "$stamp" >".venv/.vkml/$group"; done
}

install_system_packages
install_python_packages
