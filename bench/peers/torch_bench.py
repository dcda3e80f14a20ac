"""Times one collective of a torch.distributed backend on float32, as mpi_bench.c does, data checked.

    torch_bench.py BACKEND OP MIN MAX FACTOR ROUNDS [DTYPE]

runs as one rank: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set. DTYPE: float32 (default)
or bfloat16. `bytes` is the whole tensor: of an all-gather the gathered one.
"""
import json
import sys
import time

import torch
import torch.distributed as dist

WARM_UP_ROUNDS = 3


def source(count: int, rank: int, dtype: torch.dtype) -> torch.Tensor:
    return (((torch.arange(count) * 7 + rank * 13) % 97).float() / 97).to(dtype)


def run(op: str, work: torch.Tensor, part: int, out: torch.Tensor) -> None:
    if op == "all_reduce":
        dist.all_reduce(work)
    elif op == "all_gather":
        dist.all_gather_into_tensor(out, work[:part])
    else:
        dist.reduce_scatter_tensor(out, work[: part * dist.get_world_size()])


def expected(op: str, count: int, part: int, dtype: torch.dtype) -> torch.Tensor:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if op == "all_gather":
        return torch.cat([source(count, each, dtype)[:part] for each in range(ranks)]).float()
    total = sum(source(count, each, dtype).float() for each in range(ranks))
    return total if op == "all_reduce" else total[rank * part : (rank + 1) * part]


def main() -> None:
    backend, op = sys.argv[1:3]
    low, high, factor, rounds = map(int, sys.argv[3:7])
    dtype = getattr(torch, sys.argv[7]) if len(sys.argv) > 7 else torch.float32
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    rank, ranks, size = dist.get_rank(), dist.get_world_size(), low
    while size <= high:
        count = size // dtype.itemsize
        part = count // ranks
        if op == "all_reduce" or part:
            original, times = source(count, rank, dtype), []
            out = torch.empty(part if op == "reduce_scatter" else part * ranks, dtype=dtype)
            for k in range(-WARM_UP_ROUNDS, rounds):
                work = original.clone()
                dist.barrier()
                begun = time.perf_counter()
                run(op, work, part, out)
                slowest = torch.tensor([time.perf_counter() - begun])
                dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
                if k >= 0:
                    times.append(float(slowest))
            got = (work if op == "all_reduce" else out).float()
            tolerance = 1e-4 if dtype is torch.float32 else 0.05 * ranks
            close = torch.allclose(got, expected(op, count, part, dtype), atol=tolerance)
            wrong = torch.tensor([0.0 if close else 1.0])
            dist.all_reduce(wrong, op=dist.ReduceOp.MAX)
            times.sort()
            if rank == 0:
                line = {"op": op, "ranks": ranks, "bytes": size, "wrong": int(wrong),
                        "us": round(times[rounds // 2] * 1e6, 2), "us_min": round(times[0] * 1e6, 2)}
                print(json.dumps(line), flush=True)
            if wrong:
                sys.exit(3)
        size *= factor
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
