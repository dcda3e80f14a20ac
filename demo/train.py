"""Trains the demo's transformer, cut over the ranks that torchrun started.

One machine:    torchrun --nproc-per-node 4 demo/train.py --backend cais
Several hosts:  torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d
                    --rdzv-endpoint HOST:29500 demo/train.py --backend cais

The ranks form groups of --tp; several groups train on different batches and average their
gradients. The result of a run depends on its flags alone: the same seed gives the same bits.
"""
import argparse
import contextlib
import hashlib
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import loss_parallel
from tqdm import tqdm

import meter
import text
from model import VOCABULARY, Shape, Transformer, parallelize

LEARNING_WARM_UP_STEPS = 10


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that demo/run.py shares with this script."""
    defaults = Shape()
    add = parser.add_argument
    add("--tp", type=positive_int, help="ranks that one copy of the model is cut over")
    add("--steps", type=positive_int, default=60)
    add("--batch", type=positive_int, default=4, help="sequences per step and group")
    add("--files", nargs="+", default=[], help="text to learn (default: Debian's licences)")
    add("--seed", type=int, default=1)
    add("--learning-rate", type=float, default=1e-3)
    for size in ("hidden", "layers", "heads", "feed_forward", "sequence"):
        flag = "--" + size.replace("_", "-")
        add(flag, type=positive_int, default=getattr(defaults, size))


def positive_int(word: str) -> int:
    try:
        value = int(word)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{word}' is not a whole number above 0")
    return value


def shape_of(arguments: argparse.Namespace) -> Shape:
    return Shape(
        hidden=arguments.hidden,
        layers=arguments.layers,
        heads=arguments.heads,
        feed_forward=arguments.feed_forward,
        sequence=arguments.sequence,
    )


def check(arguments: argparse.Namespace, ranks: int) -> None:
    """ValueError, in words for the user, when a run with these flags cannot work."""
    if ranks % arguments.tp:
        raise ValueError(f"{ranks} ranks cannot be split into groups of --tp {arguments.tp}")
    shape_of(arguments).check(arguments.tp)
    text.check_length(text.load(arguments.files), arguments.sequence)


def start_backend(backend: str) -> None:
    if backend == "cais":
        try:
            import torch_cais  # noqa: F401  (registers the backend)
        except ImportError as error:
            raise ValueError(f"torch_cais cannot be imported ({error}); run `make install`") from error
    elif backend == "fake":
        from torch.testing._internal.distributed import fake_pg  # noqa: F401  (registers it)
    store, rank, ranks = next(dist.rendezvous("env://"))
    dist.init_process_group(backend, store=store, rank=rank, world_size=ranks)


def average_gradients(model: Transformer, groups: DeviceMesh) -> None:
    """Over the groups that hold copies of the same shard: one all-reduce of all gradients."""
    gradients = [local(parameter.grad) for parameter in model.parameters()]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat, group=groups.get_group())
    flat /= groups.size()
    for gradient, part in zip(gradients, flat.split([each.numel() for each in gradients])):
        gradient.copy_(part.view_as(gradient))


def local(tensor: torch.Tensor) -> torch.Tensor:
    if not isinstance(tensor, DTensor):
        return tensor
    if any(placement.is_partial() for placement in tensor.placements):
        tensor = tensor.full_tensor()
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def weights_digest(model: Transformer) -> str:
    """SHA-256 over every bit of this rank's weights."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().to_local().contiguous().numpy().tobytes())
    return digest.hexdigest()


def gather_digests(digest: str) -> str:
    """One digest of all ranks', at rank 0, through the store: no backend is trusted with it."""
    store = dist.distributed_c10d._get_default_store()
    store.set(f"demo/digest/{dist.get_rank()}", digest)
    if dist.get_rank() != 0:
        return ""
    every = [store.get(f"demo/digest/{rank}") for rank in range(dist.get_world_size())]
    return hashlib.sha256(b"".join(every)).hexdigest()


class Trainer:
    def __init__(self, arguments: argparse.Namespace):
        ranks = dist.get_world_size()
        mesh = init_device_mesh(
            "cpu", (ranks // arguments.tp, arguments.tp), mesh_dim_names=("groups", "tp")
        )
        torch.manual_seed(arguments.seed)
        self.groups, self.model = mesh["groups"], Transformer(shape_of(arguments))
        parallelize(self.model, mesh["tp"])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=arguments.learning_rate)
        self.warm_up = torch.optim.lr_scheduler.LinearLR(
            self.optimizer, start_factor=0.1, total_iters=LEARNING_WARM_UP_STEPS
        )
        group = self.groups.get_local_rank()
        self.batches = text.Batches(
            text.load(arguments.files), arguments.batch, arguments.sequence,
            seed=arguments.seed * 1_000_003 + group,
        )

    def step(self) -> float:
        tokens, following = self.batches.next()
        self.optimizer.zero_grad()
        with loss_parallel():
            logits = self.model(tokens)
            loss = F.cross_entropy(logits.flatten(0, 1), following.flatten())
            loss.backward()
        if self.groups.size() > 1:
            average_gradients(self.model, self.groups)
        self.optimizer.step()
        self.warm_up.step()
        return local(loss.detach()).item()


def train(arguments: argparse.Namespace) -> dict:
    """Runs all steps; the result is rank 0's, with `stats` of torch_cais where that was used."""
    trainer = Trainer(arguments)
    if arguments.backend == "cais":
        import torch_cais

        torch_cais.reset_stats()  # what making the groups took is no part of a step
    losses, seconds, counted = [], [], meter.CollectiveBytes()
    bar = tqdm(
        range(arguments.steps), desc=f"{arguments.backend:>5}", disable=dist.get_rank() != 0,
        ncols=88, mininterval=0.5, unit="step",
    )
    for step in bar:
        begun = time.perf_counter()
        with counted if step == 0 else contextlib.nullcontext():
            losses.append(trainer.step())
        seconds.append(time.perf_counter() - begun)
        bar.set_postfix_str(f"loss {losses[-1]:.3f}", refresh=False)
    step_seconds = meter.step_seconds(seconds)
    result = {
        "backend": arguments.backend,
        "ranks": dist.get_world_size(),
        "tp": arguments.tp,
        "losses": losses,
        "step_seconds": step_seconds,
        "tokens_per_second": trainer.groups.size() * arguments.batch * arguments.sequence
        / step_seconds,
        "weights": gather_digests(weights_digest(trainer.model)),
        "collectives_per_step": counted.calls,
        "collective_bytes_per_step": counted.input_bytes,
    }
    if arguments.backend == "cais":
        result["stats"] = torch_cais.stats()
        result["bytes_by_path"] = bytes_by_path(result["stats"])
    return result


def bytes_by_path(stats: dict) -> dict[str, int]:
    """Bytes of this rank's tensors by what carried them: shm, udp, mixed, or gloo."""
    total: dict[str, int] = {}
    for group in stats.values():
        for paths in group["ops"].values():
            for path, counted in paths.items():
                carrier = group["transport"] if path == "cais" else path
                total[carrier] = total.get(carrier, 0) + counted["bytes"]
    return total


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", choices=("gloo", "cais", "fake"), default="cais")
    add_flags(parser)
    parser.add_argument("--out", help="file for the result, as JSON")
    arguments = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("start this with torchrun (see --help), or run `make demo`")
    ranks = int(os.environ["WORLD_SIZE"])
    arguments.tp = arguments.tp or ranks
    torch.set_num_threads(1)
    # Denormals in the made-up numbers of the fake backend would slow its kernels down.
    torch.set_flush_denormal(True)
    try:
        check(arguments, ranks)
        start_backend(arguments.backend)
    except ValueError as error:
        sys.exit(f"train.py: {error}" if os.environ["RANK"] == "0" else 2)
    result = train(arguments)
    if dist.get_rank() == 0 and arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            json.dump(result, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
