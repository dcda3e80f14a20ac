"""An extension fits the torch that it was built for, and no other: C++ has no stable ABI there."""
import torch

from torch_cais._build_info import TORCH_VERSION

REBUILD = (
    "Build it again for this one: `pip install --force-reinstall --no-deps --no-cache-dir "
    "torch_cais` (or `pip install .` in its source tree), with the pip of this environment."
)


def _release(version):
    """Without what comes after '+': the CPU and CUDA builds of one release have the same ABI."""
    return version.split("+")[0]


def check_torch_version():
    """Raises ImportError when this torch is another release than the one built for."""
    if _release(torch.__version__) != _release(TORCH_VERSION):
        raise ImportError(
            f"torch_cais was built for torch {TORCH_VERSION}, and this is torch "
            f"{torch.__version__}. {REBUILD}"
        )


def load_extension():
    """The module torch_cais._C; loaded when the first group is made, not at import."""
    try:
        from torch_cais import _C
    except ImportError as error:
        raise ImportError(
            f"the extension of torch_cais, built for torch {TORCH_VERSION}, does not load under "
            f"torch {torch.__version__} ({error}). {REBUILD}"
        ) from error
    return _C
