#!/usr/bin/env bash
# Stands in for ssh under mpirun and mpiexec: runs the command on the lab host with that address.
set -eu
while [[ $1 == -* ]]; do shift; done
host=$1; shift
exec "$(dirname "$0")/../lab/lab.sh" host "${host##*.}" bash -c "$*"
