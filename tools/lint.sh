#!/usr/bin/env bash
# Looks without changing: clang-format, clang-tidy (the checks of .clang-tidy), shell and Python
# syntax. Says every finding, then fails if there was one.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0
step() { echo "lint: $1"; shift; "$@" || bad=1; }

shell_syntax() {
  local file ok=0
  while read -r file; do bash -n "$file" || ok=1; done < <(git ls-files '*.sh' .ci/run)
  return $ok
}
python_syntax() { git ls-files -z '*.py' | xargs -0 -r .venv/bin/python -m py_compile; }
tidy() {
  local tidy
  tidy=$(compgen -c clang-tidy- | grep -E '^clang-tidy-[0-9]+$' | sort -V | tail -n 1)
  [[ -n $tidy ]] || { echo "no clang-tidy: run make setup" >&2; return 1; }
  cmake --preset dev --log-level=WARNING > /dev/null || return 1
  # Generated headers must be there before anything that includes them is read.
  cmake --build --preset dev > /dev/null || return 1
  .venv/bin/python - <<'PY' | xargs -0 -r -n 1 -P "$(nproc)" "$tidy" --quiet -p build/dev \
      --extra-arg=-Wno-unknown-warning-option 2> >(grep -v 'warnings generated\|Suppressed\|Use -header-filter' >&2)
import json, os
for entry in json.load(open("build/dev/compile_commands.json")):
    path = os.path.relpath(entry["file"])
    if path.startswith(("src/", "apps/", "sim/", "tests/lab/")):
        print(path, end="\0")
PY
}

step "format" tools/format.sh --check
step "shell syntax" shell_syntax
step "Python syntax" python_syntax
step "clang-tidy" tidy
((bad)) && { echo "lint: failed" >&2; exit 1; }
echo "lint: clean"
