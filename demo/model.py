"""A Llama-style transformer, and the plan by which DTensor cuts it over the ranks.

Nothing here knows a backend: the modules are plain PyTorch for one process, and `parallelize` gives
them to `parallelize_module` with column, row and sequence parallel styles, as in Megatron-LM
(Shoeybi et al. 2019; Korthikanti et al. 2022 for sequence parallelism).
"""
import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

VOCABULARY = 256  # bytes


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes of the model; tensors between the layers are [batch, sequence, hidden]."""

    hidden: int = 512
    layers: int = 4
    heads: int = 8
    feed_forward: int = 1408
    sequence: int = 128

    def check(self, tp: int) -> None:
        """ValueError, in words for the user, when these sizes cannot be cut over `tp` ranks."""
        if self.hidden % self.heads or (self.hidden // self.heads) % 2:
            raise ValueError(
                f"--hidden {self.hidden} must be --heads {self.heads} times an even number"
            )
        for flag, value in (
            ("--heads", self.heads),
            ("--feed-forward", self.feed_forward),
            ("--sequence", self.sequence),
            ("the vocabulary of", VOCABULARY),
        ):
            if value % tp:
                raise ValueError(
                    f"{flag} {value} cannot be cut over --tp {tp} ranks: it is not a multiple of "
                    f"{tp}"
                )


class RMSNorm(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotary_table(sequence: int, head: int) -> Tensor:
    """cos and sin of each position's angles: [2, sequence, 1, head / 2] (RoFormer, Su et al.)."""
    frequency = 10000.0 ** (-torch.arange(0, head, 2).float() / head)
    angle = torch.outer(torch.arange(sequence).float(), frequency)[:, None, :]
    return torch.stack([angle.cos(), angle.sin()])


def rotate(x: Tensor, table: Tensor) -> Tensor:
    """Turns the pairs (first half, second half) of [batch, sequence, heads, head]."""
    cos, sin = table
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


class Attention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.head = shape.hidden // shape.heads
        self.q = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.k = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.v = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.out = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.register_buffer("table", rotary_table(shape.sequence, self.head), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        # Each rank holds whole heads: the projections' outputs are as wide as its share of them.
        q, k, v = (project(x).unflatten(-1, (-1, self.head)) for project in (self.q, self.k, self.v))
        q, k = rotate(q, self.table), rotate(k, self.table)
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """SwiGLU (Shazeer 2020)."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.gate = nn.Linear(shape.hidden, shape.feed_forward, bias=False)
        self.up = nn.Linear(shape.hidden, shape.feed_forward, bias=False)
        self.down = nn.Linear(shape.feed_forward, shape.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.attention_norm = RMSNorm(shape.hidden)
        self.attention = Attention(shape)
        self.feed_forward_norm = RMSNorm(shape.hidden)
        self.feed_forward = FeedForward(shape)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class Transformer(nn.Module):
    """Tokens [batch, sequence] to logits [batch, sequence, VOCABULARY]."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, shape.hidden)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = RMSNorm(shape.hidden)
        self.head = nn.Linear(shape.hidden, VOCABULARY, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def parallelize(model: Transformer, mesh: DeviceMesh) -> None:
    """Cuts the weights over the one-dimensional `mesh`, in place. Every rank made the same weights from
    the same seed, and keeps its part of them: nothing is sent.

    Between the blocks each rank holds its part of the sequence. A block gathers the sequence
    (all-gather), works on its share of the heads or of the feed-forward width, and hands back sums
    that are scattered over the sequence again (reduce-scatter). The logits stay cut by vocabulary.
    """
    gathered = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
    block_plan = {
        "attention_norm": SequenceParallel(),
        "attention": gathered,
        "attention.q": ColwiseParallel(),
        "attention.k": ColwiseParallel(),
        "attention.v": ColwiseParallel(),
        "attention.out": RowwiseParallel(output_layouts=Shard(1)),
        "feed_forward_norm": SequenceParallel(),
        "feed_forward": gathered,
        "feed_forward.gate": ColwiseParallel(),
        "feed_forward.up": ColwiseParallel(),
        "feed_forward.down": RowwiseParallel(output_layouts=Shard(1)),
    }
    for block in model.blocks:
        parallelize_module(block, mesh, block_plan, src_data_rank=None)
    parallelize_module(
        model,
        mesh,
        {
            "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": SequenceParallel(),
            "head": ColwiseParallel(
                input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False
            ),
        },
        src_data_rank=None,
    )
