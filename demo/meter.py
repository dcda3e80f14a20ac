"""What the demo measures about its collectives, in the same way for every backend.

Time. Ranks share cores here, so a clock around each collective would mostly count how long a rank
waits for its turn on a core. Instead the same training step also runs on PyTorch's `fake` backend,
whose collectives return at once and move nothing: same kernels, same number of processes on the
same cores. The time spent in collectives is what the step takes longer than that.

Bytes. A dispatch mode sees every functional collective of one step and adds up what goes in: the
same that torch_cais.stats() counts.
"""
import statistics

from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

WARM_UP_STEPS = 2  # pages are touched, groups are connected, descriptors are made


class CollectiveBytes(TorchDispatchMode):
    """Counts the collectives that run inside `with`, and the bytes of their input tensors."""

    NAMESPACES = ("_c10d_functional", "c10d")
    NOT_COUNTED = ("wait_tensor", "_wrap_tensor_autograd")  # these move nothing

    def __init__(self):
        super().__init__()
        self.calls: dict[str, int] = {}
        self.input_bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(each, DTensor) for each in types):
            return NotImplemented  # let DTensor turn it into local operations and collectives first
        name = func._schema.name
        if name.split("::")[0] in self.NAMESPACES and not name.endswith(self.NOT_COUNTED):
            self.calls[name] = self.calls.get(name, 0) + 1
            self.input_bytes += args[0].numel() * args[0].element_size()
        return func(*args, **(kwargs or {}))


def step_seconds(times: list[float]) -> float:
    """The median step, warm-up aside."""
    return statistics.median(times[WARM_UP_STEPS:] or times)


def collective_share(step: float, step_without: float) -> float:
    """Share of `step` seconds spent in collectives, 0 to 1."""
    return max(0.0, step - step_without) / step
