"""Runs a function in several ranks on this machine, and gives back what each returned.

    results = run(lambda rank: ..., ranks=4)

What it returns must not be a tensor (those are shared by way of a process that has ended by then).
Ranks are forked, so the function may be a closure; `dist.init_process_group` has been called, and
the group is destroyed afterwards. A rank that raises, dies or is late fails the test with its
traceback, unless the test asks for `failures_allowed`.
"""
import dataclasses
import multiprocessing
import multiprocessing.connection
import os
import signal
import tempfile
import time
import traceback

import torch.distributed as dist

SECONDS_MAX = 60


@dataclasses.dataclass
class Failure:
    """How a rank ended that returned nothing."""

    kind: str  # the exception's class, or "killed"
    text: str  # its traceback
    seconds: float  # from the start of the function


def run(function, ranks, *, backend="cais", seconds=SECONDS_MAX, environment=None,
        failures_allowed=False, timeout=None):
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        pipes, processes = [], []
        for rank in range(ranks):
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(
                target=_rank_main,
                args=(function, rank, ranks, backend, f"{folder}/store", sender, environment or {},
                      timeout),
            )
            process.start()
            sender.close()
            pipes.append(receiver)
            processes.append(process)
        try:
            results = _collect(pipes, time.monotonic() + seconds)
        finally:
            for process in processes:
                process.join(2)
                if process.is_alive():
                    process.kill()
                    process.join()
    if not failures_allowed:
        broken = {rank: r.text for rank, r in enumerate(results) if isinstance(r, Failure)}
        assert not broken, "\n".join(f"rank {rank}:\n{text}" for rank, text in broken.items())
    return results


def _collect(pipes, deadline):
    results = [Failure("late", "did not end in time", 0.0)] * len(pipes)
    waiting = {pipe: rank for rank, pipe in enumerate(pipes)}
    while waiting and time.monotonic() < deadline:
        for pipe in multiprocessing.connection.wait(list(waiting), deadline - time.monotonic()):
            rank = waiting.pop(pipe)
            try:
                results[rank] = pipe.recv()
            except EOFError:
                results[rank] = Failure("killed", "ended without a word", 0.0)
    return results


def _rank_main(function, rank, ranks, backend, store, sender, environment, timeout):
    signal.alarm(0)
    os.environ.update(environment, RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank))
    began = time.monotonic()
    try:
        options = {} if timeout is None else {"timeout": timeout}
        dist.init_process_group(backend, init_method=f"file://{store}", rank=rank,
                                world_size=ranks, **options)
        began = time.monotonic()
        result = function(rank)
        dist.destroy_process_group()
    except BaseException as error:  # noqa: B036: whatever it is, the parent must hear of it
        result = Failure(type(error).__name__, traceback.format_exc(), time.monotonic() - began)
    sender.send(result)
    sender.close()
    os._exit(0)
