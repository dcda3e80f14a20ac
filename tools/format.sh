#!/usr/bin/env bash
# clang-format over the C++ of the repository; with --check it only says what is not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
[[ ${1:-} == --check ]] && mode=(--dry-run --Werror)
git ls-files -z --cached --others --exclude-standard '*.cpp' '*.hpp' '*.h' '*.c' |
  xargs -0 -r .venv/bin/clang-format "${mode[@]}"
