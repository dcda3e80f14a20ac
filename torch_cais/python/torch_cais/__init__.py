"""CAIS as a backend of torch.distributed.

    import torch.distributed as dist
    dist.init_process_group("cais")     # this package need not be imported for that

`stats()` tells which collectives went through CAIS, which did not, and why.
"""
from torch_cais._build_info import CAIS_VERSION as __version__
from torch_cais._version_check import check_torch_version

check_torch_version()

from torch_cais._backend import reset_stats, stats  # noqa: E402: after the check

__all__ = ["__version__", "reset_stats", "stats"]
