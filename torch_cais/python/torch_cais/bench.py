"""Measures one collective of torch.distributed over a range of sizes, with nccl-tests' flags.

    python -m torch_cais.bench all_reduce --ranks 4           4 ranks on this machine
    torchrun --nproc-per-node 4 -m torch_cais.bench all_reduce    ranks that torchrun started
    python -m torch_cais.bench all_reduce --backend gloo      the same through another backend

Times are microseconds of the slowest rank, a barrier before each iteration. algbw is the tensor's
bytes by time; busbw multiplies it by what a ring would have to carry. `#wrong` counts elements that
are not what they should be; the exit status is not 0 when there are any.
"""
import argparse
import json
import os
import socket
import sys
import time

import torch
import torch.distributed as dist

OPS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "barrier")
REDUCE_OPS = {"sum": dist.ReduceOp.SUM, "avg": dist.ReduceOp.AVG, "min": dist.ReduceOp.MIN,
              "max": dist.ReduceOp.MAX, "prod": dist.ReduceOp.PRODUCT}
DTYPES = {name: getattr(torch, name) for name in
          ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64")}


def size(text):
    """Bytes: a number with K, M or G behind it, or none."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    unit = units.get(text[-1:].upper(), 1)
    digits = text[:-1] if unit > 1 else text
    if not digits.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no size; 8, 64K and 32M are")
    return int(digits) * unit


def arguments():
    parser = argparse.ArgumentParser(
        prog="python -m torch_cais.bench", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("op", choices=OPS, metavar="OP", help=", ".join(OPS))
    parser.add_argument("-b", "--minbytes", type=size, default=8, help="first size (8)")
    parser.add_argument("-e", "--maxbytes", type=size, default=size("32M"), help="last size (32M)")
    parser.add_argument("-f", "--stepfactor", type=int, default=2, help="next size: times this (2)")
    parser.add_argument("-n", "--iters", type=int, default=20, help="timed iterations (20)")
    parser.add_argument("-w", "--warmup_iters", type=int, default=5, help="before them (5)")
    parser.add_argument("-c", "--check", type=int, choices=(0, 1), default=1, help="check data (1)")
    parser.add_argument("-d", "--datatype", choices=DTYPES, default="float32", metavar="TYPE",
                        help=", ".join(DTYPES))
    parser.add_argument("-o", "--op", dest="reduce_op", choices=REDUCE_OPS, default="sum",
                        metavar="OP", help=", ".join(REDUCE_OPS))
    parser.add_argument("-J", "--json", metavar="FILE", help="write the results to this file, too")
    parser.add_argument("--backend", default="cais", help="of torch.distributed (cais)")
    parser.add_argument("--ranks", type=int, default=2, help="to start here, without torchrun (2)")
    chosen = parser.parse_args()
    if chosen.stepfactor < 2 or chosen.iters < 1 or chosen.ranks < 1:
        parser.error("--stepfactor must be 2 or more, --iters and --ranks 1 or more")
    return chosen


class Work:
    """The tensors of one size, the call on them, and what must come out of it."""

    def __init__(self, chosen, size_bytes):
        self.op, self.reduce_op = chosen.op, REDUCE_OPS[chosen.reduce_op]
        rank, ranks = dist.get_rank(), dist.get_world_size()
        dtype = DTYPES[chosen.datatype]
        part = 0 if self.op == "barrier" else max(size_bytes // dtype.itemsize // ranks, 1)
        self.count = part * ranks
        self.bytes = self.count * dtype.itemsize
        whole = [self._numbers(r, dtype) for r in range(ranks)]
        self.source = whole[rank]
        self.want = self._expected(whole, rank, part)
        self.out = torch.empty_like(self.want)
        self.input = self.source[rank * part:][:part] if self.op == "all_gather" else self.source

    def _numbers(self, rank, dtype):
        # Small whole numbers: sums and products of 64 ranks are exact in every dtype but int8's
        # range, which wraps alike everywhere.
        return ((torch.arange(self.count) * 7 + rank * 13) % 3 + 1).to(dtype)

    def _expected(self, whole, rank, part):
        if self.op == "barrier":
            return torch.empty(0)
        if self.op == "broadcast":
            return whole[0]
        if self.op == "all_gather":
            return torch.cat([x[r * part:][:part] for r, x in enumerate(whole)])
        if self.op == "all_to_all":
            return torch.cat([x[rank * part:][:part] for x in whole])
        if self.op == "reduce" and rank != 0:
            return self.source
        total = self._reduced(torch.stack(whole))
        return total[rank * part:][:part] if self.op == "reduce_scatter" else total

    def _reduced(self, stacked):
        dtype = stacked.dtype
        if self.reduce_op == dist.ReduceOp.MIN:
            return stacked.amin(0)
        if self.reduce_op == dist.ReduceOp.MAX:
            return stacked.amax(0)
        wide = stacked.double() if dtype.is_floating_point else stacked.long()
        if self.reduce_op == dist.ReduceOp.PRODUCT:
            return wide.prod(0).to(dtype)
        total = wide.sum(0)
        if self.reduce_op == dist.ReduceOp.AVG:
            total = total / len(stacked) if dtype.is_floating_point else total // len(stacked)
        return total.to(dtype)

    def prepare(self):
        if self.op in ("all_reduce", "reduce", "broadcast"):
            self.out.copy_(self.source)
        else:
            self.out.zero_()

    def call(self):
        if self.op == "all_reduce":
            dist.all_reduce(self.out, self.reduce_op)
        elif self.op == "reduce":
            dist.reduce(self.out, 0, self.reduce_op)
        elif self.op == "broadcast":
            dist.broadcast(self.out, 0)
        elif self.op == "all_gather":
            dist.all_gather_into_tensor(self.out, self.input)
        elif self.op == "reduce_scatter":
            dist.reduce_scatter_tensor(self.out, self.input, self.reduce_op)
        elif self.op == "all_to_all":
            dist.all_to_all_single(self.out, self.input)
        else:
            dist.barrier()

    def wrong(self):
        if self.op == "reduce" and dist.get_rank() != 0:
            return 0
        return int((self.out != self.want).sum())


def measure(chosen, size_bytes):
    work = Work(chosen, size_bytes)
    times = torch.zeros(chosen.iters, dtype=torch.float64)
    wrong = 0
    for i in range(-chosen.warmup_iters, chosen.iters):
        work.prepare()
        dist.barrier()
        begun = time.perf_counter()
        work.call()
        if i >= 0:
            times[i] = (time.perf_counter() - begun) * 1e6
        if chosen.check:
            wrong = max(wrong, work.wrong())
    outcome = torch.cat([times, torch.tensor([float(wrong)], dtype=torch.float64)])
    dist.all_reduce(outcome, dist.ReduceOp.MAX)
    times, wrong = outcome[:-1], int(outcome[-1])
    ranks = dist.get_world_size()
    ring = {"all_reduce": 2 * (ranks - 1) / ranks, "all_gather": (ranks - 1) / ranks,
            "reduce_scatter": (ranks - 1) / ranks, "all_to_all": (ranks - 1) / ranks}
    p50, p99 = (float(torch.quantile(times, q)) for q in (0.5, 0.99))
    algbw = work.bytes / p50 / 1e3 if work.op != "barrier" else 0.0
    return {"op": work.op, "backend": chosen.backend, "ranks": ranks, "bytes": work.bytes,
            "count": work.count, "dtype": chosen.datatype, "redop": chosen.reduce_op,
            "time_us": float(times.mean()), "p50_us": p50, "p99_us": p99, "algbw_gbs": algbw,
            "busbw_gbs": algbw * ring.get(work.op, 1.0), "wrong": wrong}


def run_rank(chosen):
    torch.set_num_threads(1)
    dist.init_process_group(chosen.backend)
    results = []
    if dist.get_rank() == 0:
        print(f"# {chosen.op} through {chosen.backend}: {dist.get_world_size()} ranks; "
              f"{chosen.iters} iterations after {chosen.warmup_iters}")
        print(f"# {'size':>10} {'count':>12} {'type':>9} {'redop':>6} {'time':>10} {'p50':>10} "
              f"{'p99':>10} {'algbw':>8} {'busbw':>8} {'#wrong':>7}")
    size_bytes = chosen.minbytes
    while size_bytes <= chosen.maxbytes:
        row = measure(chosen, size_bytes)
        results.append(row)
        if dist.get_rank() == 0:
            print("  {bytes:>10} {count:>12} {dtype:>9} {redop:>6} {time_us:>10.2f} {p50_us:>10.2f} "
                  "{p99_us:>10.2f} {algbw_gbs:>8.2f} {busbw_gbs:>8.2f} {wrong:>7}".format(**row),
                  flush=True)
        if chosen.op == "barrier":
            break
        size_bytes *= chosen.stepfactor
    if chosen.json and dist.get_rank() == 0:
        with open(chosen.json, "w") as file:
            json.dump(results, file, indent=1)
    dist.barrier()
    dist.destroy_process_group()
    if any(row["wrong"] for row in results):
        sys.exit("wrong data: see #wrong")


def _start_rank(rank, chosen, port):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(chosen.ranks), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port))
    run_rank(chosen)


def main():
    chosen = arguments()
    if "RANK" in os.environ:
        return run_rank(chosen)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    torch.multiprocessing.spawn(_start_rank, (chosen, port), nprocs=chosen.ranks)


if __name__ == "__main__":
    main()
