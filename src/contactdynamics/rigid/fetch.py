"""Lines of cache: rows that stand on them, and asking the memory for what a loop will need some rounds later.

A step goes through more memory than the caches of a core hold. A loop over contacts finds its bodies all over it, and
does so much for each contact that the processor looks ahead by one or two of them only: it would wait for each body.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from .._jit import kernel

AHEAD = 8  # contacts: about as long as the memory takes
LINE = 64  # bytes of a line of cache


def lines(rows: int, columns: int = 8, dtype=float) -> np.ndarray:
    """Zeros (rows, columns) that begin on a line of cache: a row of 8 numbers is one line, and no two threads' line.

    NumPy's arrays begin at any multiple of 16 bytes, where each such row lies on two lines.
    """
    size = rows * columns * np.dtype(dtype).itemsize
    memory = np.zeros(size + LINE, dtype=np.uint8)
    begin = -memory.ctypes.data % LINE
    return memory[begin : begin + size].view(dtype).reshape(rows, columns)


@kernel
def shift_down(column, begin, end, at):
    """Move the rows from ``begin`` on, before ``end``, of a column (K,) down to row ``at``."""
    for k in range(end - begin):
        column[at + k] = column[begin + k]


def fetch(array, row):
    """Begin to load the line of cache in which ``row`` of an ``array`` begins; nothing else happens."""


@overload(fetch)
def _compiled_fetch(array, row):
    return lambda array, row: _fetch(array, row)


@intrinsic
def _fetch(typing, array, row):
    """LLVM's prefetch: for reading, into all caches."""

    def code(context, builder, signature, args):
        whole, number, byte = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
        found = context.make_array(signature.args[0])(context, builder, args[0])
        at = args[1] if args[1].type == whole else builder.zext(args[1], whole)
        at = builder.mul(at, builder.extract_value(found.strides, 0))
        place = builder.gep(builder.bitcast(found.data, byte), [at])
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(call, [place, *(ir.Constant(number, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, row), code
