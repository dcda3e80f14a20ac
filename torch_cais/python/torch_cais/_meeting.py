"""A part of the store that nobody used before: `torchrun` gives restarted workers the store of those
that died, with all that they left in it.

Every rank says a random word; rank 0 answers with the words of all; a rank that finds its own in
the answer knows that rank 0 is of this attempt, and that rank 0's word names it. Words of an earlier
attempt never match, so rank 0 asks again until all have thanked it.
"""
import time
import uuid

import torch.distributed as dist

_SECONDS_BETWEEN_LOOKS = 0.005


def fresh_store(options):
    """The group's store under a prefix of this attempt. Collective over the group."""
    store, rank, ranks = options.store, options.group_rank, options.group_size
    word = uuid.uuid4().hex
    deadline = time.monotonic() + options.timeout.total_seconds()
    if ranks > 1:
        try:
            meet = _answer_all if rank == 0 else _be_answered
            word = meet(store, rank, ranks, word, options.timeout, deadline)
        except dist.DistStoreError as error:
            raise dist.DistBackendError(
                f"CAIS: group '{options.group_id}', rank {rank} of {ranks}: the ranks did not all "
                f"come together in the store within {options.timeout}: {error}"
            ) from error
    return dist.PrefixStore(f"cais-{word}", store)


def _answer_all(store, rank, ranks, word, timeout, deadline):
    others = range(1, ranks)
    store.wait([f"word/{r}" for r in others], timeout)
    answered = None
    while True:
        words = " ".join([word, *(_get(store, f"word/{r}") for r in others)])
        if words != answered:
            store.set("answer", words)
            answered = words
            store.wait([f"thanks/{r}" for r in others], timeout)
        late = [r for r in others if _get(store, f"thanks/{r}") != word]
        if not late:
            return word
        _look_again(deadline, f"rank(s) {', '.join(map(str, late))} have not arrived")


def _be_answered(store, rank, ranks, word, timeout, deadline):
    store.set(f"word/{rank}", word)
    store.wait(["answer"], timeout)
    while True:
        words = _get(store, "answer").split()
        if len(words) == ranks and words[rank] == word:
            store.set(f"thanks/{rank}", words[0])
            return words[0]
        _look_again(deadline, "rank 0 has not arrived")


def _get(store, key):
    return store.get(key).decode()


def _look_again(deadline, why_late):
    if time.monotonic() > deadline:
        raise dist.DistStoreError(why_late)
    time.sleep(_SECONDS_BETWEEN_LOOKS)
