#!/usr/bin/env bash
# Makes this machine ready to build, test and run CAIS: Debian packages, then .venv.
#
# Does nothing, quickly, when a stamp says that this very script and requirements.txt have run here.
# Works as root, or through sudo; otherwise it says which packages to ask for. Debian 12 and 13.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "setup: $*" >&2; exit 1; }

stamp=.venv/.cais-setup
key=$(cat tools/setup.sh tools/requirements.txt | sha256sum | cut -d' ' -f1)
if [[ -f $stamp && $(< "$stamp") == "$key" ]]; then exit 0; fi

[[ -r /etc/os-release ]] || fail "no /etc/os-release; this script knows Debian 12 and 13"
. /etc/os-release
case "${ID:-}-${VERSION_ID:-}" in
  debian-12) clang=14 ;;
  debian-13) clang=19 ;;  # has no clang-tidy-14; clang-format is pinned by requirements.txt
  *) fail "this is ${PRETTY_NAME:-an unknown system}; the package names below are Debian 12's and 13's.
  Install their like by hand, then: python3 -m venv .venv && .venv/bin/pip install -r tools/requirements.txt
  && echo $key > $stamp" ;;
esac

packages=(
  # build
  g++ cmake ninja-build ccache pkg-config make git
  # libraries: numeric, tag, logging, command line, configuration
  libhwy-dev libxxhash-dev libspdlog-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev
  # management interface of cais-switch
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  # tests and benchmarks
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev
  # the network lab
  iproute2 ethtool libbpf-dev
  # clang-tidy, and clang for the fuzz targets and for programs that run in the kernel
  "clang-$clang" "clang-tidy-$clang" "libclang-rt-$clang-dev"
  # Python
  python3 python3-venv python3-dev
)

installed() { [[ $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) == "install ok installed" ]]; }
missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done

if ((${#missing[@]})); then
  if ((EUID == 0)); then
    as_root=()
  elif command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
    as_root=(sudo -n)
  elif command -v sudo > /dev/null && [[ -t 0 ]]; then
    as_root=(sudo)
  else
    fail "these Debian packages are missing, and only root can install them. Ask for:
  apt-get install --no-install-recommends ${missing[*]}"
  fi
  echo "setup: installing ${#missing[@]} Debian packages: ${missing[*]}"
  "${as_root[@]}" apt-get -qq update
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -y --no-install-recommends install "${missing[@]}" > /dev/null
fi

if [[ ! -x .venv/bin/python ]]; then
  echo "setup: making .venv"
  python3 -m venv .venv
fi
echo "setup: installing the Python packages of tools/requirements.txt"
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r tools/requirements.txt
.venv/bin/python -c 'import torch, numpy; assert torch.__version__.startswith("2.13.0"), torch.__version__' \
  || fail ".venv does not hold a working torch 2.13.0; remove .venv and run make setup again"

echo "$key" > "$stamp"
echo "setup: ready"
