"""What people do with a backend: DDP, FSDP2, tensor parallel, torch.compile, checkpoints, restarts,
and a model of Hugging Face's."""
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

import torch_cais
from ranks import run


def small_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))


def batch_of(rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(8, 16, generator=generator), torch.randn(8, 16, generator=generator)


def train(model, optimizer, batches):
    for x, y in batches:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def trained_alone(ranks, steps):
    """The same training in one process, over the batches of all ranks at once."""
    model = small_model()
    batches = []
    for step in range(steps):
        parts = [batch_of(rank, step) for rank in range(ranks)]
        batches.append(tuple(torch.cat(column) for column in zip(*parts)))
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), batches)
    return model.state_dict()


def went_through_cais(*ops):
    ways = torch_cais.stats()
    for op in ops:
        calls = sum(g["ops"].get(op, {}).get("cais", {}).get("calls", 0) for g in ways.values())
        assert calls > 0, (op, ways)


def assert_same(state, want):
    for name, tensor in want.items():
        torch.testing.assert_close(state[name], tensor, rtol=1e-4, atol=1e-5)


def test_ddp():
    def body(rank):
        model = nn.parallel.DistributedDataParallel(small_model(), bucket_cap_mb=0.001)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1),
              [batch_of(rank, step) for step in range(5)])
        assert_same(model.module.state_dict(), trained_alone(3, 5))
        went_through_cais("all_reduce", "broadcast")

    run(body, 3)


def test_ddp_communication_hook():
    def body(rank):
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        model = nn.parallel.DistributedDataParallel(small_model())
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), [batch_of(rank, 0)])
        return [p.tolist() for p in model.parameters()]

    first, second = run(body, 2)
    assert first == second


def test_fsdp2():
    def body(rank):
        from torch.distributed.fsdp import fully_shard

        model = small_model()
        for layer in (model[0], model[2]):
            fully_shard(layer, mesh=init_device_mesh("cpu", (2,)))
        fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
        train(model, torch.optim.SGD(model.parameters(), lr=0.1),
              [batch_of(rank, step) for step in range(4)])
        full = {name: p.full_tensor() for name, p in model.state_dict().items()}
        assert_same(full, trained_alone(2, 4))
        went_through_cais("all_gather", "reduce_scatter")

    run(body, 2)


def tensor_parallel(model, mesh):
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, RowwiseParallel, parallelize_module)

    return parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


def test_tensor_parallel():
    def body(rank):
        mesh = init_device_mesh("cpu", (4,))
        model = tensor_parallel(small_model(), mesh)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1),
              [batch_of(0, step) for step in range(4)])
        full = {name: p.full_tensor() for name, p in model.state_dict().items()}
        assert_same(full, trained_alone(1, 4))
        went_through_cais("all_reduce", "all_gather")

    run(body, 4)


@pytest.mark.seconds_max(240)
def test_compile_with_functional_collectives():
    def body(rank):
        import torch.distributed._functional_collectives as funcol

        group = dist.group.WORLD
        n = dist.get_world_size()

        @torch.compile(fullgraph=True, backend="aot_eager")
        def step(x):
            total = funcol.all_reduce(x * 2, "sum", group)
            parts = funcol.all_gather_tensor(total, 0, group)
            return funcol.reduce_scatter_tensor(parts, "avg", 0, group) + 1

        x = torch.full((6,), float(rank))
        want = torch.full((6,), 2.0 * sum(range(n)) + 1)
        assert torch.equal(step(x), want)
        assert torch.equal(step(x), want)
        went_through_cais("all_reduce", "all_gather", "reduce_scatter")

    run(body, 2, seconds=200)


def test_distributed_checkpoint(tmp_path):
    def body(rank):
        import torch.distributed.checkpoint as dcp

        mesh = init_device_mesh("cpu", (2,))
        model = tensor_parallel(small_model(), mesh)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), [batch_of(0, 0)])
        want = {name: p.full_tensor() for name, p in model.state_dict().items()}
        dcp.save({"model": model.state_dict()}, checkpoint_id=tmp_path / "saved")
        other = tensor_parallel(small_model(), mesh)
        state = {"model": other.state_dict()}
        dcp.load(state, checkpoint_id=tmp_path / "saved")
        other.load_state_dict(state["model"])
        for name, p in other.state_dict().items():
            assert torch.equal(p.full_tensor(), want[name])

    run(body, 2)


def test_objects():
    def body(rank):
        n = dist.get_world_size()
        objects = [None] * n
        dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
        assert objects == [{"rank": r, "text": "x" * r} for r in range(n)]
        box = [f"from {rank}"]
        dist.broadcast_object_list(box, src=1)
        assert box == ["from 1"]

    run(body, 3)


RESTART = """
    import os, pathlib, signal, sys, torch, torch.distributed as dist
    dist.init_process_group("cais")
    folder, attempt = pathlib.Path(sys.argv[1]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    state = folder / "step"
    first = int(state.read_text()) if state.exists() else 0
    x = torch.ones(1 << 16)
    for step in range(first, 6):
        dist.all_reduce(x, op=dist.ReduceOp.AVG)
        if step == 3 and attempt == 0 and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if dist.get_rank() == 0:
            state.write_text(str(step + 1))
        dist.barrier()
    if dist.get_rank() == 0:
        print("done", attempt, first, x.sum().item(), flush=True)
    dist.destroy_process_group()
"""


def test_torchrun_restarts_after_a_killed_rank(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(RESTART))
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3", "--standalone",
         "--max-restarts", "2", str(script), str(tmp_path)],
        capture_output=True, text=True, timeout=140, cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "done 1 3 65536.0" in done.stdout or "done 1 4 65536.0" in done.stdout, done.stdout


def llama(folder: pathlib.Path):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=128, hidden_size=64, intermediate_size=128,
                         num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=4,
                         max_position_embeddings=64, tie_word_embeddings=False,
                         bos_token_id=1, eos_token_id=None, pad_token_id=0)
    LlamaForCausalLM(config).save_pretrained(folder)


@pytest.mark.seconds_max(240)
def test_hugging_face_tensor_parallel(tmp_path):
    pytest.importorskip("transformers")
    llama(tmp_path)
    tokens = torch.arange(2, 14).reshape(2, 6)

    def answer(**options):
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(tmp_path, **options).eval()
        with torch.no_grad():
            logits = model(tokens).logits
            generated = model.generate(tokens, max_new_tokens=8, do_sample=False,
                                       attention_mask=torch.ones_like(tokens))
        return logits, generated

    alone_logits, alone_generated = answer()

    def body(rank):
        logits, generated = answer(tp_plan="auto")
        went_through_cais("all_reduce")
        return getattr(logits, "full_tensor", lambda: logits)().tolist(), generated.tolist()

    for logits, generated in run(body, 4, seconds=200):
        torch.testing.assert_close(torch.tensor(logits), alone_logits, rtol=1e-4, atol=1e-5)
        assert generated == alone_generated.tolist()
