#!/usr/bin/env bash
# Installs torch_cais into .venv when its sources are newer than what is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

stamp=.venv/.cais-installed
sources=(CMakeLists.txt cmake include pyproject.toml src torch_cais)
if [[ -f $stamp ]] && .venv/bin/python -m pip show -q torch_cais 2> /dev/null &&
  [[ -z $(find "${sources[@]}" -name __pycache__ -prune -o -type f -newer "$stamp" -print -quit) ]]; then
  exit 0
fi
begun=$(mktemp); trap 'rm -f "$begun"' EXIT
echo "install: building torch_cais into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
  --no-build-isolation .
touch -r "$begun" "$stamp"
