"""Tensors in memory that the peers map: who gets it, that it is added right, and forks."""
import subprocess
import sys

import torch
import torch.distributed as dist

import torch_cais
from ranks import run

LARGE = 1 << 16  # elements


def test_pool_serves_large_tensors_of_this_thread():
    outside = torch.empty(LARGE)
    with torch_cais.mem_pool():
        inside = torch.empty(LARGE)
        small = torch.empty(8)
        with torch_cais.mem_pool():
            nested = torch.empty(LARGE)
        still = inside * 2
    after = torch.empty(LARGE)
    shared = [torch_cais.is_shared(t) for t in (outside, inside, small, nested, still, after)]
    assert shared == [False, True, False, True, True, False]


def test_memory_comes_back():
    from torch_cais import _C

    before = _C.arena_bytes_in_use()
    with torch_cais.mem_pool():
        x = torch.empty(LARGE)
    assert _C.arena_bytes_in_use() >= before + 4 * LARGE
    x.resize_(4 * LARGE)  # a storage that grows keeps its allocator, which is closed now
    x = x + 1
    del x
    assert _C.arena_bytes_in_use() == before


def test_collectives_over_shared_memory():
    def body(rank):
        n = dist.get_world_size()
        with torch_cais.mem_pool():
            x = torch.arange(float(LARGE)) + rank
            whole = torch.empty(n * LARGE)
        assert torch_cais.is_shared(x) and torch_cais.is_shared(whole)
        dist.all_gather_into_tensor(whole, x)
        for r in range(n):
            assert torch.equal(whole[r * LARGE:(r + 1) * LARGE], torch.arange(float(LARGE)) + r)
        for _ in range(3):
            y = x.clone() if rank == 1 else x  # one rank's memory may be of another kind
            dist.all_reduce(y, op=dist.ReduceOp.AVG)
            assert torch.allclose(y, torch.arange(float(LARGE)) + (n - 1) / 2)
            x = torch_copy(rank)

    def torch_copy(rank):
        with torch_cais.mem_pool():
            return torch.arange(float(LARGE)) + rank

    run(body, 3)


class Writes(torch.utils.data.Dataset):
    """Its workers, forked from the rank, write to the rank's tensor."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __len__(self):
        return 8

    def __getitem__(self, index):
        seen = self.tensor[index].item()
        self.tensor.fill_(-1.0)
        scratch = torch.full((LARGE,), float(index))
        return torch.tensor([seen, scratch.sum().item()])


def test_data_loader_workers_write_to_their_own():
    def body(rank):
        with torch_cais.mem_pool():
            x = torch.arange(float(LARGE))
            loader = torch.utils.data.DataLoader(Writes(x), batch_size=1, num_workers=2)
            batches = list(loader)
        assert torch.equal(x, torch.arange(float(LARGE)))
        assert [b[0, 1].item() for b in batches] == [float(i * LARGE) for i in range(8)]
        dist.all_reduce(x)
        assert torch.equal(x, torch.arange(float(LARGE)) * dist.get_world_size())

    run(body, 2)


def test_whole_process():
    code = (
        "import torch\n"
        "from torch_cais import is_shared\n"
        "assert is_shared(torch.empty(1 << 16)) and not is_shared(torch.empty(4))\n"
        "import threading\n"
        "t = threading.Thread(target=lambda: print(is_shared(torch.empty(1 << 16))))\n"
        "t.start(); t.join()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**__import__("os").environ, "CAIS_ALLOCATOR": "1"}, check=False)
    assert done.stdout.strip() == "True", done.stderr
