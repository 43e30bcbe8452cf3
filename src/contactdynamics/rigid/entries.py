"""Kernels of one kind of contacts, called by their address: what goes over all kinds is compiled once.

A solver that got the arrays of all kinds by their types would be compiled for each set of kinds that stand together in
a scene, with the sweeps of all of them. It gets a *table* instead: for each kind where its arrays are described in
memory and where the machine code of its own kernels begins, the *entries*. An entry is compiled for one kind, when a
scene first has contacts of it, and kept in the cache as any kernel: no address is ever compiled in.

Where kernels are not compiled, the table is the tuple of kinds.
"""

import zlib
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import config, typeof, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from .._jit import Settled, kernel
from .crew import unowned
from .equations.contract import Kind, Mobility, Plan

SWEEP, MEASURE, POWERS, KNOWN, COMMON, KIND, WIDTH = range(7)  # columns of the table: addresses


class Common(NamedTuple):
    """What all kinds have."""

    a: np.ndarray  # (m,) rows of the bodies
    b: np.ndarray  # (m,)
    plan: Plan


def _array(dtype, dimension: int = 1):
    """Numba's type of an array in order of C."""
    return types.Array(dtype, dimension, "C")


NUMBERS, TABLE = _array(types.float64), _array(types.float64, 2)
PLACES, CUTS = _array(types.uint32), _array(types.int64)
MOBILITY = typeof(Mobility(np.zeros((0, 3, 3)), 1.0, 3))
COMMON_TYPE = types.NamedTuple(
    [PLACES, PLACES, types.NamedTuple([PLACES, CUTS, PLACES, CUTS, TABLE, TABLE], Plan)], Common
)


def _word(context, builder, kind, array, index):
    """Pointer to an element of an array of whole numbers."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


def _loaded(context, builder, kind, pointer):
    """The value of a Numba type at an address; references to its arrays need no count: see `unowned`."""
    model = context.data_model_manager[kind]
    return model.load_from_data_pointer(builder, builder.bitcast(pointer, model.get_data_type().as_pointer()))


@intrinsic
def there(typing, place):
    """The named tuple at a ``place``, a pointer whose type says what it is; nothing is copied."""

    def build(context, builder, signature, args):
        return _loaded(context, builder, signature.return_type, args[0])

    return place.dtype(place), build


@intrinsic
def common(typing, kinds, at):
    """The `Common` of the kind in row ``at`` of the table."""

    def build(context, builder, signature, args):
        row = builder.mul(args[1], ir.Constant(args[1].type, WIDTH))
        word = _word(context, builder, kinds, args[0], builder.add(row, ir.Constant(row.type, COMMON)))
        pointer = builder.inttoptr(builder.load(word), ir.IntType(8).as_pointer())
        return _loaded(context, builder, COMMON_TYPE, pointer)

    return COMMON_TYPE(kinds, types.int64), build


@intrinsic
def _write(typing, value, words, begin):
    """Describe a ``value`` in memory, in the ``words`` from ``begin`` on; returns the address."""

    def build(context, builder, signature, args):
        model = context.data_model_manager[value]
        pointer = _word(context, builder, words, args[1], args[2])
        data = model.as_data(builder, unowned(context, builder, value, args[0]))
        builder.store(data, builder.bitcast(pointer, model.get_data_type().as_pointer()))
        return builder.ptrtoint(pointer, ir.IntType(64))

    return types.int64(value, words, types.int64), build


@intrinsic
def _name(typing, value):
    """A number for the type of a ``value``."""
    name = zlib.crc32(repr(value).encode())
    return types.int64(value), lambda context, builder, signature, args: ir.Constant(ir.IntType(64), name)


@intrinsic
def _all_have(typing, value):
    """Refuse what is not a `Common`: the arrays of a kind have other types."""
    if value != COMMON_TYPE:
        raise TypingError(f"the rows of bodies and the plan of a kind of contacts are {COMMON_TYPE}, not {value}")
    return types.void(value), lambda context, builder, signature, args: context.get_dummy_value()


there.borrows = common.borrows = True  # see `_lean`

if config.DISABLE_JIT:

    def there(place):
        return place

    def common(kinds, at):
        return Common(kinds[at].contacts.a, kinds[at].contacts.b, kinds[at].plan)


@kernel
def put(kind, words, row, begin):
    """Describe a ``kind`` in the ``words`` from ``begin`` on, and say where in a ``row`` of the table."""
    one = Common(kind.contacts.a, kind.contacts.b, kind.plan)
    _all_have(one)
    words[row * WIDTH + COMMON] = _write(one, words, begin)
    words[row * WIDTH + KIND] = _write(kind, words, begin + LENGTH)
    return _name(kind)


LENGTH = 60  # words of a `Common`
ENTRIES: dict[int, tuple] = {}  # by column: the kernel, the type that it returns, those of its arguments
_known: dict[int, tuple] = {}  # addresses, by the name of a kind's type


def by_address(column: int, function, returns, *arguments):
    """A function ``(kinds, at, arguments)`` that calls the entry of the kind in row ``at`` of the table.

    ``function(place, *arguments)`` is a kernel whose first argument is the `there` of a kind; the types of all others
    and of its result are said here, and are those of its callers.
    """
    ENTRIES[column] = function, returns, arguments
    if config.DISABLE_JIT:
        return lambda kinds, at, given: function(kinds[at], *given)

    @intrinsic
    def call(typing, kinds, at, given):
        if len(given) != len(arguments) or None in map(typing.can_convert, given, arguments):
            raise TypingError(f"an entry takes {arguments}, not {given}")

        def build(context, builder, signature, args):
            table, at, together = args
            begin = builder.mul(at, ir.Constant(at.type, WIDTH))
            code, place = (
                builder.load(_word(context, builder, kinds, table, builder.add(begin, ir.Constant(at.type, k))))
                for k in (column, KIND)
            )
            passed = [builder.inttoptr(place, ir.IntType(8).as_pointer())]
            for k, (have, want) in enumerate(zip(given, arguments, strict=True)):
                passed.append(context.cast(builder, builder.extract_value(together, k), have, want))
            wanted, convention = (types.voidptr, *arguments), context.call_conv
            entry = builder.inttoptr(code, convention.get_function_type(returns, wanted).as_pointer())
            status, result = convention.call_function(builder, entry, returns, wanted, passed)
            with builder.if_then(status.is_error, likely=False):
                convention.return_status_propagate(builder, status)
            return result

        return returns(kinds, types.int64, given), build

    return call


def _addresses(kind: Kind) -> tuple:
    """Where the entries of this kind begin, compiled or from the cache; column by column."""
    found = []
    for column in range(COMMON):
        function, returns, arguments = ENTRIES[column]
        types_ = types.CPointer(typeof(kind)), *arguments
        function.compile(types_)
        code = function.overloads[types_]
        if types.unliteral(code.signature.return_type) != returns:
            raise TypeError(f"{function.__name__} returns {code.signature.return_type}, not {returns}")
        found.append(code.library.get_pointer_to_function(code.fndesc.llvm_func_name))
    return tuple(found)


def _words(kind: Kind) -> int:
    """Not less than the words that describe a kind."""
    return sum(5 + 2 * array.ndim for part in kind for array in part)


def table(kinds: tuple, settled: dict | None = None):
    """The table of the ``kinds``, which must live as long as it; see above.

    ``settled``: what is kept of `put` from one table to the next, by the type of contacts.
    """
    if config.DISABLE_JIT:
        return kinds
    settled = {} if settled is None else settled
    lengths = [LENGTH + _words(kind) for kind in kinds]
    words, begin = np.empty(WIDTH * len(kinds) + sum(lengths), dtype=np.int64), WIDTH * len(kinds)
    for row, (kind, length) in enumerate(zip(kinds, lengths, strict=True)):
        sort = type(kind.contacts)
        if sort not in settled:
            settled[sort] = Settled(put)
        name = settled[sort](kind, words, row, begin)
        if name not in _known:
            _known[name] = _addresses(kind)
        words[row * WIDTH : row * WIDTH + COMMON] = _known[name]
        begin += length
    return words[: WIDTH * len(kinds)].reshape(-1, WIDTH)
