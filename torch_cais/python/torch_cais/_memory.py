"""CPU tensors in memory that CAIS owns: ranks on one machine add them in place, with no copy."""
import contextlib
import os

from torch_cais._version_check import load_extension


@contextlib.contextmanager
def mem_pool():
    """Large CPU tensors that this thread makes inside come from memory that peers map:

        with torch_cais.mem_pool():
            weights = torch.empty(4096, 4096)

    "Large" is CAIS_ALLOCATOR_MIN_BYTES and more. The tensors live as long as ever; leaving the
    block only ends what new ones are made of. CAIS_ALLOCATOR=1 does the same for a whole process.
    """
    extension = load_extension()
    extension.install_allocator(whole_process=False)
    extension.enter_pool()
    try:
        yield
    finally:
        extension.leave_pool()


def is_shared(tensor):
    """Whether the memory of this CPU tensor is one that the peers map."""
    return tensor.device.type == "cpu" and load_extension().in_arena(tensor)


def install_if_asked():
    """CAIS_ALLOCATOR=1 takes effect when torch_cais is imported, which `import torch` does."""
    if os.environ.get("CAIS_ALLOCATOR", "0") not in ("", "0"):
        load_extension().install_allocator(whole_process=True)
