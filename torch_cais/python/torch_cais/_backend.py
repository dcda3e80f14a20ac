"""Registers the backend "cais" and makes its groups."""
import collections
import warnings

import torch.distributed as dist

from torch_cais import _inner
from torch_cais._meeting import fresh_store
from torch_cais._version_check import load_extension

# Counters of the groups made so far, also of those that are gone; the oldest are forgotten.
_GROUPS_REMEMBERED_MAX = 1024
_group_stats = collections.OrderedDict()
_warned = False


def _create(options, backend_options=None):
    """What init_process_group and new_group call (torch.distributed's extended API)."""
    extension = load_extension()
    _warn_once(extension)
    store = fresh_store(options)
    backend, stats = extension.create_group(
        store=store,
        name=options.group_id,
        rank=options.group_rank,
        ranks=options.group_size,
        timeout=options.timeout,
        gloo=_inner.make_gloo(store, options),
        nccl=_inner.make_nccl(store, options),
    )
    _group_stats[options.group_id] = stats
    _group_stats.move_to_end(options.group_id)
    if len(_group_stats) > _GROUPS_REMEMBERED_MAX:
        _group_stats.popitem(last=False)
    return backend


def _warn_once(extension):
    global _warned
    if not _warned:
        _warned = True
        for warning in extension.environment_warnings():
            warnings.warn(f"CAIS: {warning}", stacklevel=2)


def stats():
    """What the groups of this process did, by group, op and path:

    {group: {"rank": 0, "ranks": 4, "transport": "shm", "ops": {
        "all_reduce": {"cais": {"calls": 12, "bytes": 49152, "reason": "computed by CAIS"},
                       "gloo": {"calls": 1, "bytes": 8, "reason": "dtype not reduced by CAIS"}}}}}

    `bytes` are those of this rank's tensors. Several reasons for one path are joined by "; ".
    """
    return {name: _as_dict(group) for name, group in _group_stats.items()}


def _as_dict(group):
    operations = {}
    for op, path, reason, calls, size in group.rows():
        entry = operations.setdefault(op, {}).setdefault(
            path, {"calls": 0, "bytes": 0, "reason": reason}
        )
        entry["calls"] += calls
        entry["bytes"] += size
        if reason not in entry["reason"]:
            entry["reason"] += f"; {reason}"
    return {
        "rank": group.rank,
        "ranks": group.ranks,
        "transport": group.transport,
        "ops": operations,
    }


def reset_stats():
    """Sets all counters to zero."""
    for group in _group_stats.values():
        group.reset()


if dist.is_available():
    dist.Backend.register_backend("cais", _create, extended_api=True, devices=["cpu", "cuda"])
