"""The libraries that take what CAIS does not compute: Gloo, and NCCL for tensors on a GPU."""
import os
import socket

import torch
import torch.distributed as dist


def make_gloo(store, options):
    """An inner Gloo, made together with the group: point-to-point calls could not make it, since
    only two of the ranks know of each. It connects at once, as Gloo does by itself, so that a peer
    that dies is noticed (TORCH_GLOO_LAZY_INIT=1 makes it connect on first use instead).
    """
    gloo = dist.ProcessGroupGloo
    inner_options = getattr(gloo, "_Options", None) or gloo.Options
    inner_options = inner_options()
    inner_options._timeout = options.timeout
    name = _interface()
    inner_options._devices = [
        gloo.create_device(interface=name) if name else gloo.create_default_device()
    ]
    inner_options._threads = 2
    inner_store = dist.PrefixStore("gloo", store)
    return gloo(inner_store, options.group_rank, options.group_size, inner_options)


def _interface():
    """The interface that the user names for Gloo, or for CAIS where that is one plain name."""
    if os.environ.get("GLOO_SOCKET_IFNAME"):
        return os.environ["GLOO_SOCKET_IFNAME"].split(",")[0]
    for variable in ("CAIS_SOCKET_IFNAME", "CAIS_NIC_IFACE"):
        wanted = os.environ.get(variable, "")
        if wanted and not wanted.startswith("^"):
            exact = wanted.startswith("=")
            prefixes = wanted.lstrip("=").split(",")
            for _, name in socket.if_nameindex():
                if any(name == p or (not exact and name.startswith(p)) for p in prefixes):
                    return name
    return None


def make_nccl(store, options):
    """An inner NCCL where this torch and this machine have it. It connects on first use."""
    if not (torch.cuda.is_available() and dist.is_nccl_available()):
        return None
    inner_options = dist.ProcessGroupNCCL.Options()
    inner_options._timeout = options.timeout
    inner_store = dist.PrefixStore("nccl", store)
    return dist.ProcessGroupNCCL(inner_store, options.group_rank, options.group_size, inner_options)
