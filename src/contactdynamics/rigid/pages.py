"""Memory for large arrays, on large pages where the system has them.

A step of 14 000 grains goes through some 20 MB, in arrays of some hundred kB each. On pages of 4 kB the processor must
find out where each of them is, in a virtual machine by a walk through many tables; of 2 MB it knows them all. Linux
gives such pages to whoever asks, and for large pieces of memory only: arrays therefore stand one after the other in
such pieces. A piece is given back when none of its arrays is used any more.
"""

import contextlib
import math
import mmap
import threading

import numpy as np

LINE = 64  # bytes of a line of cache
LARGE = 1 << 16  # bytes from which an array stands in such a piece
PAGE, PIECE = 1 << 21, 1 << 24  # bytes of a large page, and of a piece that arrays share
PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


class _Pieces:
    """The piece from which arrays are cut, and how much of it is taken."""

    def __init__(self):
        self.lock, self.piece, self.taken = threading.Lock(), None, PIECE

    def cut(self, size: int) -> tuple[mmap.mmap, int]:
        """A piece with ``size`` bytes that nobody has used, and where they begin."""
        size = -(-size // LINE) * LINE
        if size > PIECE // 4:
            return _new_piece(size), 0
        with self.lock:
            if self.taken + size > PIECE:
                self.piece, self.taken = _new_piece(PIECE), 0
            self.taken += size
            return self.piece, self.taken - size


def _new_piece(size: int) -> mmap.mmap:
    """So many zero bytes of the operating system's, or more."""
    piece = mmap.mmap(-1, -(-size // PAGE) * PAGE, **PRIVATE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel that has no large pages
            piece.madvise(mmap.MADV_HUGEPAGE)
    return piece


_PIECES = _Pieces()


def zero_bytes(size: int, kind=np.ndarray) -> np.ndarray:
    """(size,) zero bytes that begin on a line of cache, of their own: an array of this ``kind``."""
    if size >= LARGE:
        return kind((size,), np.uint8, *_PIECES.cut(size))
    memory = bytearray(size + LINE)
    return kind((size,), np.uint8, memory, -np.frombuffer(memory, np.uint8).ctypes.data % LINE)


def zeros(shape, dtype=float) -> np.ndarray:
    """Zeros of this ``shape``, a number or a tuple, that begin on a line of cache."""
    count = shape if isinstance(shape, int) else math.prod(shape)
    return zero_bytes(count * np.dtype(dtype).itemsize).view(dtype).reshape(shape)
