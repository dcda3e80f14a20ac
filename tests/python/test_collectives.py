"""Every collective of the backend, in every form, for every dtype, against what it should give."""
import pytest
import torch
import torch.distributed as dist

import torch_cais
from ranks import run

ADDED = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8,
         torch.int32, torch.int64]
MOVED = [*ADDED, torch.bool, torch.int16, torch.complex64, torch.complex128]
SHAPES = [(7,), (3, 5), (2, 1, 4), (), (0, 3), (300, 70)]
REDUCTIONS = {
    dist.ReduceOp.SUM: lambda all_of: all_of.sum(0),
    dist.ReduceOp.PRODUCT: lambda all_of: all_of.prod(0),
    dist.ReduceOp.MIN: lambda all_of: all_of.amin(0),
    dist.ReduceOp.MAX: lambda all_of: all_of.amax(0),
}


def value(rank, shape, dtype, salt=0):
    """What `rank` contributes: small whole numbers, exact in every dtype, also when added."""
    generator = torch.Generator().manual_seed(1000 * salt + rank)
    numbers = torch.randint(0, 4, shape, generator=generator)
    if dtype.is_complex:
        return torch.complex(numbers.double(), numbers.flip(0).double() if shape else
                             numbers.double()).to(dtype)
    return numbers.to(dtype)


def expect(got, want):
    assert torch.equal(got, want), f"got {got}, want {want}"


def computed(op):
    """How many calls of `op` CAIS computed, over the default group."""
    entry = torch_cais.stats()["0"]["ops"].get(op, {}).get("cais", {})
    return entry.get("calls", 0)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_reductions(ranks):
    def body(rank):
        calls = 0
        for shape in SHAPES:
            for dtype in ADDED:
                for op, reference in REDUCTIONS.items():
                    all_of = torch.stack([value(r, shape, dtype) for r in range(ranks)])
                    want = reference(all_of.double()).to(dtype)
                    got = value(rank, shape, dtype)
                    dist.all_reduce(got, op=op)
                    expect(got, want)
                    got = value(rank, shape, dtype)
                    dist.reduce(got, ranks - 1, op=op)
                    if rank == ranks - 1:
                        expect(got, want)
                    calls += 1
        assert computed("all_reduce") == computed("reduce") == calls

    run(body, ranks)


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_average(ranks):
    def body(rank):
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            want = (torch.stack([value(r, (33,), torch.float64) for r in range(ranks)]).sum(0)
                    / ranks).to(dtype)
            got = value(rank, (33,), dtype)
            dist.all_reduce(got, op=dist.ReduceOp.AVG)
            torch.testing.assert_close(got, want)
            shard = torch.empty(33, dtype=dtype)
            whole = value(rank, (33,), dtype).repeat(ranks)
            dist.reduce_scatter_tensor(shard, whole, op=dist.ReduceOp.AVG)
            torch.testing.assert_close(shard, want)

    run(body, ranks)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_reduce_scatter(ranks):
    def body(rank):
        for dtype in ADDED:
            for shape in ((4,), (3, 2), (0,), (129, 65)):
                wholes = [[value(r, shape, dtype, salt=k) for k in range(ranks)]
                          for r in range(ranks)]
                want = torch.stack([wholes[r][rank] for r in range(ranks)]).double().sum(0)
                got = torch.empty(shape, dtype=dtype)
                dist.reduce_scatter_tensor(got, torch.cat(wholes[rank]))
                expect(got, want.to(dtype))
                got = torch.empty(shape, dtype=dtype)
                dist.reduce_scatter(got, wholes[rank])
                expect(got, want.to(dtype))

    run(body, ranks)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_moving(ranks):
    def body(rank):
        root = ranks - 1
        for dtype in MOVED:
            for shape in ((5,), (2, 3), (), (0, 2), (70, 33)):
                of = [value(r, shape, dtype) for r in range(ranks)]
                mine = of[rank].clone()

                got = mine.clone()
                dist.broadcast(got, root)
                expect(got, of[root])

                parts = [torch.empty_like(mine) for _ in range(ranks)]
                dist.all_gather(parts, mine)
                expect(torch.stack(parts), torch.stack(of))

                flat = torch.empty((ranks * mine.numel(),), dtype=dtype)
                dist.all_gather_into_tensor(flat, mine.reshape(-1))
                expect(flat, torch.cat([part.reshape(-1) for part in of]))

                at_root = [torch.empty_like(mine) for _ in range(ranks)] if rank == root else None
                dist.gather(mine, at_root, dst=root)
                if rank == root:
                    expect(torch.stack(at_root), torch.stack(of))

                got = torch.empty_like(mine)
                dist.scatter(got, of if rank == root else None, src=root)
                expect(got, of[rank])

                send = torch.stack([value(rank, shape, dtype, salt=k) for k in range(ranks)])
                got = torch.empty_like(send)
                dist.all_to_all_single(got, send)
                expect(got, torch.stack([value(r, shape, dtype, salt=rank) for r in range(ranks)]))
        ways = torch_cais.stats()["0"]["ops"]
        assert all(set(by_path) == {"cais"} for by_path in ways.values()), ways

    run(body, ranks)


def test_uneven_all_to_all():
    def body(rank):
        sizes = [[1, 2, 3], [4, 0, 1], [2, 2, 2]]
        send = torch.arange(sum(sizes[rank])) + 100 * rank
        received = [sizes[r][rank] for r in range(3)]
        got = torch.empty(sum(received), dtype=send.dtype)
        dist.all_to_all_single(got, send, received, sizes[rank])
        want = torch.cat([
            torch.arange(sum(sizes[r])).split(sizes[r])[rank] + 100 * r for r in range(3)
        ])
        expect(got, want)
        entry = torch_cais.stats()["0"]["ops"]["all_to_all"]["gloo"]
        assert entry["reason"] == "split sizes may differ between ranks"

    run(body, 3)


def test_memory_that_is_not_flat():
    """Strided, transposed, channels-last, and lazily negated tensors, in and out."""
    def body(rank):
        n = dist.get_world_size()
        base = torch.zeros(6, 8)
        view = base[::2, 1:6:2]
        view.fill_(rank + 1)
        dist.all_reduce(view)
        expect(view, torch.full((3, 3), n * (n + 1) / 2))
        assert base.sum() == view.sum()

        transposed = torch.arange(12.0).reshape(3, 4).t() + rank
        dist.broadcast(transposed, 1)
        expect(transposed, torch.arange(12.0).reshape(3, 4).t() + 1)

        image = torch.full((2, 3, 4, 5), float(rank)).to(memory_format=torch.channels_last)
        dist.all_reduce(image, op=dist.ReduceOp.MAX)
        expect(image, torch.full((2, 3, 4, 5), float(n - 1)))

        negated = torch.full((4,), 1 + 2j).conj().imag  # a view that says "minus" lazily
        parts = [torch.empty(4) for _ in range(n)]
        dist.all_gather(parts, negated)
        expect(parts[0], torch.full((4,), -2.0))

        whole = torch.empty(2, 3 * n).t()
        dist.all_gather_into_tensor(whole, torch.full((3, 2), float(rank)))
        expect(whole, torch.arange(float(n)).repeat_interleave(3).unsqueeze(1).expand(3 * n, 2))

    run(body, 3)


def test_what_cais_does_not_compute():
    """goes to Gloo at every rank, is right, and is counted with its reason."""
    def body(rank):
        bits = torch.tensor([1 << rank], dtype=torch.int32)
        dist.all_reduce(bits, op=dist.ReduceOp.BOR)
        assert bits.item() == 0b111

        flags = torch.tensor([rank == 1, False])
        dist.all_reduce(flags)  # "any", as NCCL has it; computed
        assert flags.tolist() == [True, False]

        sparse = torch.sparse_coo_tensor([[rank]], [1.0], (3,))
        dist.all_reduce(sparse)
        assert sparse.to_dense().tolist() == [1.0, 1.0, 1.0]

        if rank == 0:
            dist.send(torch.tensor([5.0]), 1)
        elif rank == 1:
            got = torch.empty(1)
            assert dist.recv(got) == 0 and got.item() == 5.0
        ways = torch_cais.stats()["0"]["ops"]
        assert "reduce op" in ways["all_reduce"]["gloo"]["reason"]
        assert "sparse" in ways["all_reduce"]["gloo"]["reason"]
        if rank == 1:
            assert ways["recv"]["gloo"] == {"calls": 1, "bytes": 4, "reason": "point to point"}

    run(body, 3)


def test_a_group_ends_while_gloo_still_has_its_tensors():
    """PyTorch 2.5 hung in about one of ten: the last reference to the group went while Python's lock
    was held, and Gloo's threads, which the end waits for, wanted it to free a tensor."""
    def body(rank):
        for _ in range(20):
            group = dist.new_group([0, 1, 2])
            dist.all_reduce(torch.sparse_coo_tensor([[rank]], [1.0], (3,)), group=group)
            dist.destroy_process_group(group)
            del group

    run(body, 3)


def test_coalesced_forms():
    def body(rank):
        n = dist.get_world_size()
        with dist._coalescing_manager():
            tensors = [torch.full((k + 1,), float(rank + k)) for k in range(4)]
            for tensor in tensors:
                dist.all_reduce(tensor)
        for k, tensor in enumerate(tensors):
            expect(tensor, torch.full((k + 1,), float(sum(r + k for r in range(n)))))

        with dist._coalescing_manager(async_ops=True) as manager:
            outs = [torch.empty(n * (k + 1)) for k in range(3)]
            for k, out in enumerate(outs):
                dist.all_gather_into_tensor(out, torch.full((k + 1,), float(rank)))
        manager.wait()
        for k, out in enumerate(outs):
            expect(out, torch.arange(float(n)).repeat_interleave(k + 1))

        with dist._coalescing_manager():
            shards = [torch.empty(k + 1) for k in range(3)]
            for k, shard in enumerate(shards):
                dist.reduce_scatter_tensor(shard, torch.arange(float(n)).repeat_interleave(k + 1))
        for k, shard in enumerate(shards):
            expect(shard, torch.full((k + 1,), float(rank * n)))

        ops = [dist.P2POp(dist.isend, torch.tensor([float(rank)]), (rank + 1) % n),
               dist.P2POp(dist.irecv, torch.empty(1), (rank - 1) % n)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        assert ops[1].tensor.item() == (rank - 1) % n

    run(body, 4)


def test_async_work():
    def body(rank):
        n = dist.get_world_size()
        tensors = [torch.full((1000,), float(rank)) for _ in range(20)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        for work in reversed(works):
            assert work.wait()
            assert work.is_completed() and work.is_success()
        total = float(sum(range(n)))
        assert all(tensor.eq(total).all() for tensor in tensors)

        strided = torch.full((10, 2), float(rank))[:, 0]
        future = dist.all_reduce(strided, async_op=True).get_future()
        assert future.then(lambda f: f.value()[0].sum().item()).wait() == 10 * total

        # A callback may use the group itself.
        def again(done):
            other = torch.ones(3)
            dist.all_reduce(other)
            return other

        future = dist.all_reduce(torch.ones(1), async_op=True).get_future().then(again)
        expect(future.wait(), torch.full((3,), float(n)))

        # Work that nobody waits for ends all the same.
        dropped = torch.ones(5)
        dist.all_reduce(dropped, async_op=True)
        dist.barrier()
        expect(dropped, torch.full((5,), float(n)))

    run(body, 3)


def test_background_progress_crosses_groups():
    """Rank 0 leaves a collective under way and waits for a peer that waits for that collective."""
    def body(rank):
        x = torch.ones(100_000)
        if rank == 0:
            work = dist.all_reduce(x, async_op=True)
            dist.recv(torch.empty(1), 1)
            work.wait()
        else:
            dist.all_reduce(x)
            dist.send(torch.ones(1), 0)
        expect(x, torch.full((100_000,), 2.0))

    run(body, 2)


def test_many_groups():
    def body(rank):
        n = dist.get_world_size()
        pairs = [dist.new_group([a, b]) for a in range(n) for b in range(a + 1, n)]
        alone = [dist.new_group([r]) for r in range(n)]
        for _ in range(3):
            for group in pairs:
                if dist.get_rank(group) >= 0:
                    x = torch.tensor([float(rank)])
                    dist.all_reduce(x, group=group)
                    members = dist.get_process_group_ranks(group)
                    assert x.item() == sum(members)
            x = torch.tensor([float(rank)])
            dist.all_reduce(x, group=alone[rank])
            assert x.item() == rank
        for group in pairs[:3]:
            dist.destroy_process_group(group)
        dist.barrier()
        return len(torch_cais.stats())

    assert run(body, 4) == [5, 5, 5, 5]


def test_sequence_numbers_and_monitored_barrier():
    def body(rank):
        group = dist.group.WORLD
        backend = group._get_backend(torch.device("cpu"))
        before = backend._get_sequence_number_for_group()
        dist.all_reduce(torch.ones(1))
        dist.barrier()
        assert backend._get_sequence_number_for_group() == before + 2
        group.monitored_barrier()

    run(body, 3)
