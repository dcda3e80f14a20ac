#!/usr/bin/env bash
# Does what a user does: a fresh virtual environment, a torch from the package index, `pip install`
# of this repository with build isolation, and groups of ranks over shared memory and UDP.
#
#   tools/check_install.sh [TORCH_REQUIREMENT]      default: the torch of tools/requirements.txt
#
# Takes minutes, and the room that the torch takes. Everything goes to a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."

torch=${1:-$(grep '^torch==' tools/requirements.txt)}
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export CCACHE_BASEDIR=$folder/source CCACHE_NOHASHDIR=1

echo "check_install: $torch in a fresh environment"
"$python" -m venv "$folder/venv"
pip=("$folder/venv/bin/python" -m pip --quiet --disable-pip-version-check)
"${pip[@]}" install "$torch" numpy

echo "check_install: pip install with build isolation"
mkdir "$folder/source"
git ls-files -z | xargs -0 cp --parents -t "$folder/source"
"${pip[@]}" install "$folder/source"

cat > "$folder/ranks.py" <<'END'
import datetime, multiprocessing, sys
import torch
import torch.distributed as dist


def main(rank, store):
    dist.init_process_group("cais", init_method="file://" + store, rank=rank, world_size=3,
                            timeout=datetime.timedelta(seconds=60))
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        x = torch.full((100_000,), rank + 1, dtype=dtype)
        dist.all_reduce(x)
        assert (x == 6).all()
    parts = [torch.empty(7) for _ in range(3)]
    dist.all_gather(parts, torch.full((7,), float(rank)))
    assert [part[0].item() for part in parts] == [0, 1, 2]
    sums = torch.ones(4, dtype=torch.int32) << rank
    work = dist.all_reduce(sums, op=dist.ReduceOp.BOR, async_op=True)  # Gloo's
    work.wait()
    assert (sums == 7).all()
    if rank == 0:
        import torch_cais
        (group,) = torch_cais.stats().values()
        print("check_install: torch", torch.__version__, "over", group["transport"], flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = [multiprocessing.Process(target=main, args=(rank, sys.argv[1])) for rank in range(3)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(120)
    sys.exit(any(rank.exitcode != 0 for rank in ranks))
END

cd "$folder"
for transport in shm udp; do
  CAIS_TRANSPORT=$transport CAIS_SOCKET_IFNAME=lo \
    "$folder/venv/bin/python" ranks.py "$folder/store-$transport" 2>&1 |
    grep -v -i -e warn -e '^ *$'
done
echo "check_install: passed"
