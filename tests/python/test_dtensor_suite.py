"""DTensor on cais groups, on the base, the sweeps and the models of PyTorch's own DTensor tests.

The wheel ships their base (DTensorTestBase) with its models and its sweep over all placements; the
base's gate sees Gloo's name, while init_process_group makes cais groups.
"""
import copy
from unittest import mock

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.testing._internal.distributed._tensor.common_dtensor import (
    DTensorTestBase,
    ModelArgs,
    Transformer,
    with_comms,
)

import torch_cais

real_init = dist.init_process_group


def init_process_group(backend=None, **options):
    assert backend == "gloo"
    return real_init("cais", **options)


class TestDTensorOnCais(DTensorTestBase):
    @property
    def world_size(self):
        return 4

    @property
    def device_type(self):
        return "cpu"

    @property
    def backend(self):
        return "gloo"

    def _spawn_processes(self):
        patch = mock.patch.object(dist, "init_process_group", init_process_group)
        patch.start()
        self.addCleanup(patch.stop)
        self._start_processes(torch.multiprocessing.get_context("fork").Process)

    def computed(self, op):
        """Calls of `op` that CAIS computed at this rank; none may have been handed on."""
        calls = 0
        for group in torch_cais.stats().values():
            ways = group["ops"].get(op, {})
            self.assertLessEqual(set(ways), {"cais"})
            calls += ways.get("cais", {}).get("calls", 0)
        return calls

    @with_comms
    def test_ops_over_all_placements(self):
        mesh = self.build_device_mesh()
        torch.manual_seed(0)
        x, w, b = torch.randn(8, 12), torch.randn(16, 12), torch.randn(16)
        self._test_op(mesh, F.linear, x, w, b)
        self._test_op(mesh, torch.add, x, torch.randn(8, 12))
        self._test_op(mesh, torch.mm, x, torch.randn(12, 4))
        self._test_op(mesh, torch.softmax, x, dim=1)
        self.assertGreater(self.computed("all_gather"), 0)

    @with_comms
    def test_redistributes_between_all_layouts(self):
        """Dims that the ranks do not divide evenly are padded by DTensor."""
        mesh = self.build_device_mesh()
        torch.manual_seed(0)
        layouts = [Replicate(), Shard(0), Shard(1)]
        for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool):
            whole = torch.randint(0, 2, (10, 7)).to(dtype)
            for before in layouts:
                for after in layouts:
                    moved = distribute_tensor(whole, mesh, [before]).redistribute(mesh, [after])
                    self.assertEqual(moved.full_tensor(), whole)

    @with_comms
    def test_partial_sums_over_two_dims(self):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        torch.manual_seed(0)
        x, w = torch.randn(8, 16), torch.randn(16, 6)
        dx = distribute_tensor(x, mesh, [Shard(0), Shard(1)])
        dw = distribute_tensor(w, mesh, [Replicate(), Shard(0)])
        product = torch.mm(dx, dw)
        self.assertTrue(product.placements[1].is_partial())
        self.assertEqual(product.full_tensor(), x @ w)
        self.assertEqual(product.redistribute(mesh, [Shard(0), Shard(1)]).full_tensor(), x @ w)
        self.assertGreater(self.computed("all_reduce") + self.computed("reduce_scatter"), 0)

    def check_transformer(self, sequence_parallel):
        torch.manual_seed(0)
        args = ModelArgs(dropout_p=0.0, n_heads=4, dim=16, vocab_size=32)
        model = Transformer(args)
        split = Transformer.parallelize(
            copy.deepcopy(model), self.build_device_mesh(), use_seq_parallel=sequence_parallel,
            local_output_for_attn=True,  # DTensor has no attention kernel for CPU
        )
        tokens = torch.randint(args.vocab_size, (4, args.max_seq_len))
        for _ in range(2):
            expected, got = model(tokens), split(tokens)
            got = got.full_tensor() if isinstance(got, DTensor) else got
            self.assertEqual(got, expected)
            expected.sum().backward()
            got.sum().backward()
        for (name, parameter), its_part in zip(model.named_parameters(), split.parameters()):
            gradient = its_part.grad
            gradient = gradient.full_tensor() if isinstance(gradient, DTensor) else gradient
            self.assertEqual(gradient, parameter.grad, msg=name, rtol=1e-4, atol=1e-4)
        self.assertGreater(self.computed("all_reduce") + self.computed("reduce_scatter"), 0)

    @with_comms
    def test_transformer_tensor_parallel(self):
        self.check_transformer(sequence_parallel=False)

    @with_comms
    def test_transformer_sequence_parallel(self):
        self.check_transformer(sequence_parallel=True)
