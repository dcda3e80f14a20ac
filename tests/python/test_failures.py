"""What goes wrong is said in words, at every rank, and soon."""
import datetime
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist

from ranks import Failure, run

SECONDS_TO_REFUSE = 1.0


def refused(body, ranks):
    """The failures of all ranks; each is a DistBackendError that came within a second."""
    failures = run(body, ranks, failures_allowed=True)
    for failure in failures:
        assert isinstance(failure, Failure), failure
        assert failure.kind == "DistBackendError", failure.text
        assert failure.seconds < SECONDS_TO_REFUSE, failure.seconds
        assert "CAIS" in failure.text
    return [failure.text for failure in failures]


def other_dtype(rank):
    dist.all_reduce(torch.ones(4, dtype=torch.float64 if rank == 1 else torch.float32))


def other_shape(rank):
    dist.all_reduce(torch.ones(5 if rank == 1 else 4))


def other_layout_of_as_many(rank):
    dist.all_reduce(torch.ones((2, 6) if rank == 1 else (3, 4)))


def other_reduce_op(rank):
    dist.all_reduce(torch.ones(4), op=dist.ReduceOp.MAX if rank == 1 else dist.ReduceOp.SUM)


def other_root(rank):
    dist.broadcast(torch.ones(4), 1 if rank == 1 else 0)


def other_op(rank):
    if rank == 1:
        dist.barrier()
    else:
        dist.all_reduce(torch.ones(4))


def other_order(rank):
    x, y = torch.ones(4), torch.empty(12)
    if rank == 1:
        dist.all_gather_into_tensor(y, x)
        dist.all_reduce(x)
    else:
        dist.all_reduce(x)
        dist.all_gather_into_tensor(y, x)


def other_path(rank):
    """One rank's reduce op is computed by CAIS, the others' is Gloo's."""
    x = torch.ones(4, dtype=torch.int32)
    dist.all_reduce(x, op=dist.ReduceOp.SUM if rank == 1 else dist.ReduceOp.BOR)


@pytest.mark.parametrize("body, ours, theirs", [
    (other_dtype, "float32", "float64"),
    (other_shape, r"\[4\]", r"\[5\]"),
    (other_layout_of_as_many, r"\[3, 4\]", r"\[2, 6\]"),
    (other_reduce_op, "sum", "max"),
    (other_root, "root 0", "root 1"),
    (other_op, "all_reduce", "barrier"),
    (other_order, "all_reduce", "all_gather"),
    (other_path, r"\[4\]", r"\[0, "),
], ids=lambda value: value.__name__ if callable(value) else "")
def test_mismatch(body, ours, theirs):
    for text in refused(body, 3):
        assert re.search(ours, text) and re.search(theirs, text), text
        assert re.search(r"rank 1\b", text), text


ASYNC_OTHER_PATH = '''
import sys, torch, torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("cais", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
x = torch.ones(4, dtype=torch.int32)
work = dist.all_reduce(x, op=dist.ReduceOp.SUM if rank else dist.ReduceOp.BOR, async_op=True)
try:
    work.wait()
except dist.DistBackendError as error:
    assert "mismatched collective" in str(error), error
    print("refused", flush=True)
if rank:
    sys.stdin.read()
'''


def test_a_collective_of_gloo_that_was_refused_does_not_hold_up_the_exit(tmp_path):
    """The other rank lives on, and never comes to it."""
    ranks = [subprocess.Popen([sys.executable, "-c", ASYNC_OTHER_PATH, str(rank),
                               str(tmp_path / "store")],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
             for rank in range(2)]
    try:
        assert [rank.stdout.readline().strip() for rank in ranks] == ["refused", "refused"]
        ranks[0].wait(15)  # the group's own time-out is half an hour
        assert ranks[0].returncode == 0 and ranks[1].poll() is None
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()


def test_killed_rank():
    def body(rank):
        x = torch.ones(1 << 20)
        dist.all_reduce(x)
        if rank == 1:
            time.sleep(0.3)  # the others may still be on their way out of it
            os.kill(os.getpid(), signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(dist.DistBackendError, match="rank 1") as raised:
            dist.all_reduce(x)
        return time.monotonic() - began - 0.3, str(raised.value)

    results = run(body, 4, failures_allowed=True)
    assert results[1].kind == "killed"
    for rank in (0, 2, 3):
        seconds, text = results[rank]
        assert seconds < 1.0, text
        assert text.startswith("CAIS: ")


def test_killed_rank_under_way():
    """The others are inside the collective already, some of them asynchronously."""
    def body(rank):
        x = torch.ones(1 << 20)
        dist.all_reduce(x)
        if rank == 2:
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        work = dist.all_reduce(x, async_op=True)
        with pytest.raises(dist.DistBackendError, match="rank 2"):
            work.wait()
        assert work.exception() is not None
        with pytest.raises(dist.DistBackendError):
            dist.barrier()
        return "told"

    results = run(body, 3, failures_allowed=True)
    assert results[0] == results[1] == "told", results


def test_timeout_names_who_is_missing():
    def body(rank):
        dist.barrier()
        if rank == 1:
            time.sleep(2)
            return None
        began = time.monotonic()
        with pytest.raises(dist.DistBackendError, match=r"Timed out .*rank\(s\) 1\b"):
            dist.all_reduce(torch.ones(3))
        return time.monotonic() - began

    results = run(body, 3, timeout=datetime.timedelta(seconds=1), failures_allowed=True)
    assert 0.9 < results[0] < 1.9 and 0.9 < results[2] < 1.9


def test_timeout_of_one_wait():
    def body(rank):
        if rank == 1:
            time.sleep(1)
            return True
        work = dist.all_reduce(torch.ones(3), async_op=True)
        with pytest.raises(dist.DistBackendError, match="Timed out"):
            work.wait(datetime.timedelta(milliseconds=200))
        return True

    assert run(body, 2, failures_allowed=True)[0] is True


def test_abort_wakes_who_waits():
    def body(rank):
        group = dist.new_group([0, 1])
        if rank == 0:
            time.sleep(0.3)
            group.abort()
            return None
        with pytest.raises(dist.DistBackendError, match="abort"):
            dist.all_reduce(torch.ones(3), group=group)
        return None

    run(body, 2, failures_allowed=True)


def test_wrong_arguments_are_refused_locally():
    def body(rank):
        n = dist.get_world_size()
        with pytest.raises(dist.DistBackendError, match="times the elements"):
            dist.all_gather_into_tensor(torch.empty(3), torch.empty(4))
        with pytest.raises(dist.DistBackendError, match="like the single one"):
            dist.all_gather([torch.empty(3), torch.empty(4)], torch.empty(3))
        with pytest.raises(dist.DistBackendError, match="multiple of 2"):
            dist.all_to_all_single(torch.empty(3), torch.empty(3))
        x = torch.ones(2)
        dist.all_reduce(x)  # the group is as good as before
        assert x.tolist() == [n, n]

    run(body, 2)


@pytest.mark.parametrize("level", ["DETAIL", "INFO"])
def test_debug_levels(level):
    """TORCH_DISTRIBUTED_DEBUG=DETAIL wraps our backend in one that checks each collective."""
    def body(rank):
        dist.set_debug_level_from_env()
        group = dist.new_group([0, 1, 2])
        x = torch.full((4,), float(rank))
        dist.all_reduce(x, group=group)
        assert x.tolist() == [3.0] * 4
        parts = [torch.empty(4) for _ in range(3)]
        dist.all_gather(parts, x, group=group)
        dist.broadcast(x, 0, group=group)
        dist.barrier(group)
        if level == "DETAIL":
            with pytest.raises(RuntimeError, match="mismatch"):
                dist.all_reduce(torch.ones(4 + rank), group=group)

    run(body, 3, environment={"TORCH_DISTRIBUTED_DEBUG": level})
