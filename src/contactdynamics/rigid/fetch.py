"""Ask the memory for what a loop will need some rounds later.

A step goes through more memory than the caches of a core hold. A loop over contacts finds its bodies all over it, and
does so much for each contact that the processor looks ahead by one or two of them only: it would wait for each body.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

AHEAD = 8  # contacts: about as long as the memory takes


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
