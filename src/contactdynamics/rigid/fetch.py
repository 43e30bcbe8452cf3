"""Lines of cache: rows that stand on them or are moved, and asking the memory for what a loop needs some rounds later.

A step goes through more memory than the caches of a core hold. A loop over contacts finds its bodies all over it, and
does so much for each contact that the processor looks ahead by one or two of them only: it would wait for each body.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from .pages import zeros

AHEAD = 8  # contacts: about as long as the memory takes


def lines(rows: int, columns: int = 8, dtype=float) -> np.ndarray:
    """Zeros (rows, columns) that begin on a line of cache: a row of 8 numbers is one line, and no two threads' line.

    NumPy's arrays begin at any multiple of 16 bytes, where each such row lies on two lines.
    """
    return zeros((rows, columns), dtype)


def shift_down(column, begin, end, at):
    """Move the rows from ``begin`` on, before ``end``, of a column (K, ...) down to row ``at``; they may overlap."""
    column[at : at + end - begin] = column[begin:end]


@overload(shift_down)
def _compiled_shift_down(column, begin, end, at):
    return lambda column, begin, end, at: _move(column, np.int64(begin), np.int64(end), np.int64(at))


@intrinsic
def _move(typing, column, begin, end, at):
    """C's memmove: a loop over rows that may overlap takes one at a time, three times as long."""

    def code(context, builder, signature, args):
        found = context.make_array(signature.args[0])(context, builder, args[0])
        size = builder.extract_value(found.strides, 0)
        data = builder.bitcast(found.data, ir.IntType(8).as_pointer())
        source, target = (builder.gep(data, [builder.mul(size, args[k])]) for k in (1, 3))
        cgutils.raw_memmove(builder, target, source, builder.sub(args[2], args[1]), size)
        return context.get_dummy_value()

    return types.void(column, types.int64, types.int64, types.int64), code


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
