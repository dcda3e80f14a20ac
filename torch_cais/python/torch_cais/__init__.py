"""CAIS as a backend of torch.distributed.

    import torch.distributed as dist
    dist.init_process_group("cais")     # this package need not be imported for that

`stats()` tells which collectives went through CAIS, which did not, and why. `mem_pool()` makes
tensors in memory that ranks on one machine share.
"""
from torch_cais._build_info import CAIS_VERSION as __version__
from torch_cais._version_check import check_torch_version

check_torch_version()

from torch_cais._backend import reset_stats, stats  # noqa: E402: after the check
from torch_cais._memory import install_if_asked, is_shared, mem_pool  # noqa: E402

install_if_asked()

__all__ = ["__version__", "is_shared", "mem_pool", "reset_stats", "stats"]
