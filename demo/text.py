"""The text that the demo learns: bytes of files, and batches drawn from them by a seed."""
import pathlib

import torch
from torch import Tensor

DEFAULT_FOLDER = pathlib.Path("/usr/share/common-licenses")  # on every Debian machine


def load(names: list[str]) -> Tensor:
    """All bytes of the files (and of the files in the folders) named, as one vector of uint8.

    ValueError, in words for the user, when one cannot be read.
    """
    files: list[pathlib.Path] = []
    for path in [pathlib.Path(name) for name in names] or [DEFAULT_FOLDER]:
        if path.is_dir():
            files += sorted(each for each in path.iterdir() if each.is_file())
        else:
            files.append(path)
    # The links among Debian's licences (GPL -> GPL-3) would count a text twice.
    files = list(dict.fromkeys(each.resolve() for each in files))
    text = bytearray()
    for path in files:
        try:
            text += path.read_bytes()
        except OSError as error:
            raise ValueError(f"--files {path}: {error.strerror}") from error
    if not text:
        where = " ".join(names) or str(DEFAULT_FOLDER)
        raise ValueError(f"no text in {where}; name files with --files")
    return torch.frombuffer(text, dtype=torch.uint8)


def check_length(text: Tensor, sequence: int) -> None:
    if len(text) <= sequence + 1:
        raise ValueError(
            f"the text has {len(text)} bytes, fewer than one --sequence of {sequence} needs; "
            "name more --files"
        )


class Batches:
    """Endless batches: tokens and the tokens that follow them, both [batch, sequence] int64.

    The same `seed` gives the same batches in every process.
    """

    def __init__(self, text: Tensor, batch: int, sequence: int, seed: int):
        self._text, self._batch, self._sequence = text, batch, sequence
        self._random = torch.Generator().manual_seed(seed)

    def next(self) -> tuple[Tensor, Tensor]:
        last = len(self._text) - self._sequence - 1
        starts = torch.randint(0, last, (self._batch,), generator=self._random)
        window = self._text[starts[:, None] + torch.arange(self._sequence + 1)].long()
        return window[:, :-1], window[:, 1:]
