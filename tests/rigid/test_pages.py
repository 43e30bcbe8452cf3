"""Memory for large arrays (`rigid.pages`): zeros on lines of cache, none of them shared, given back in the end."""

import gc
import mmap
import threading
import weakref

import numpy as np
import pytest

from contactdynamics.rigid import pages


@pytest.mark.parametrize("dtype", [float, np.int8, np.uint32])
@pytest.mark.parametrize("shape", [0, 1, 7, (5, 8), pages.LARGE, (3 * pages.LARGE, 4), pages.PIECE])
def test_zeros_begin_on_a_line_of_cache_and_share_nothing(shape, dtype):
    made = [pages.zeros(shape, dtype) for _ in range(3)]
    for value, array in enumerate(made, start=1):
        assert array.shape == np.zeros(shape).shape and array.dtype == dtype and array.flags.c_contiguous
        assert not array.any() and array.flags.writeable
        assert array.size == 0 or array.ctypes.data % pages.LINE == 0
        array[...] = value
    for value, array in enumerate(made, start=1):
        assert (array == value).all()
    assert len({id(array.base) for array in made}) == 3  # a base of its own: by it lists are known again


def test_a_piece_is_given_back_with_its_last_array(monkeypatch):
    held = []

    class Piece(mmap.mmap):
        """One that can be waited for."""

    def new_piece(size):
        piece = Piece(-1, size, **pages.PRIVATE)
        held.append(weakref.ref(piece))
        return piece

    monkeypatch.setattr(pages, "_new_piece", new_piece)
    monkeypatch.setattr(pages, "_PIECES", pages._Pieces())
    size = pages.PIECE // 8
    arrays = [pages.zeros(size, np.int8) for _ in range(12)]  # eight in the first piece
    assert len(held) == 2
    kept = arrays[3][10:20]
    del arrays
    gc.collect()
    assert held[0]() is not None  # a part of one array has it
    assert not kept.any()
    del kept
    gc.collect()
    assert held[0]() is None and held[1]() is not None  # the second is still cut from


def test_threads_get_memory_of_their_own():
    made = [[] for _ in range(4)]

    def work(k):
        for _ in range(60):
            array = pages.zeros(pages.LARGE, np.int8)
            array[:] = k + 1
            made[k].append(array)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, arrays in enumerate(made):
        assert all((array == k + 1).all() for array in arrays)
