"""Four numbers at once: a number of Numba's that is four, for four contacts that have no free body in common.

A kernel that is written for floats works on fours as well, operation by operation, each rounded as that of a float.
Rows of a table come as columns, the same number of four rows, and go back so. A contact alone is a chain of some 80
operations, each of which waits for the one before; four of them take hardly longer. LLVM makes of it what the processor
has: one operation for four numbers, two or four. Where nothing is compiled, a four is an array of NumPy's (4,).
"""

import operator

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

DOUBLE, SHORT, WIDE = ir.DoubleType(), ir.IntType(32), ir.IntType(64)
VECTOR, WHOLE, BYTES = ir.VectorType(DOUBLE, 4), ir.VectorType(SHORT, 8), ir.IntType(8).as_pointer()


class Four(types.Type):
    """The type of four numbers."""

    def __init__(self):
        super().__init__(name="Four")


FOUR, NUMBER = Four(), types.float64


@register_model(Four)
class _Model(models.PrimitiveModel):
    def __init__(self, manager, type_):
        super().__init__(manager, type_, VECTOR)


def _shuffled(builder, one, two, *lanes):
    """The numbers of two vectors that stand at these ``lanes``, those of the second behind the first."""
    return builder.shuffle_vector(one, two, ir.Constant(ir.VectorType(SHORT, len(lanes)), list(lanes)))


def _spread(builder, value):
    """A number four times; four stay as they are."""
    if isinstance(value.type, ir.VectorType):
        return value
    nothing = ir.Constant(VECTOR, ir.Undefined)
    return _shuffled(builder, builder.insert_element(nothing, value, ir.Constant(SHORT, 0)), nothing, 0, 0, 0, 0)


def _enter(function, name: str) -> None:
    """Let an operator take fours, and fours beside floats."""
    pairs = [(FOUR, FOUR), (FOUR, NUMBER), (NUMBER, FOUR)]

    infer_global(function)(type("Fours", (ConcreteTemplate,), {"cases": [signature(FOUR, *pair) for pair in pairs]}))

    def code(context, builder, signature_, args):
        return getattr(builder, name)(*(_spread(builder, x) for x in args))

    for pair in pairs:
        lower_builtin(function, *pair)(code)


for _function, _name in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul"), ("truediv", "fdiv")):
    _enter(getattr(operator, _function), _name)


def _instead_of(twin):
    """Compile what follows in the place of its ``twin`` in Python, which serves where nothing is compiled."""
    return (lambda function: twin) if config.DISABLE_JIT else intrinsic


def _choosing(comparison: str):
    """Of two numbers the second one, where it compares so with the first."""

    def choose(typing, one, two):
        found = FOUR if FOUR in (one, two) else NUMBER

        def code(context, builder, signature_, args):
            if found is FOUR:
                args = [_spread(builder, x) for x in args]
            return builder.select(builder.fcmp_ordered(comparison, args[1], args[0]), args[1], args[0])

        return found(one, two), code

    return choose


def _calling(name: str):
    """A function of LLVM's for a number or four."""

    def call(typing, one):
        def code(context, builder, signature_, args):
            kind, form = args[0].type, "v4f64" if one is FOUR else "f64"
            known = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), f"llvm.{name}.{form}")
            return builder.call(known, args)

        return one(one), code

    return call


# Of two numbers or fours, the first where they cannot be compared; the square root; without sign.
larger = _instead_of(lambda one, two: np.where(two > one, two, one))(_choosing(">"))
smaller = _instead_of(lambda one, two: np.where(two < one, two, one))(_choosing("<"))
root, unsigned = _instead_of(np.sqrt)(_calling("sqrt")), _instead_of(np.abs)(_calling("fabs"))


@_instead_of(lambda one, two, three: np.where(one > 0.0, two, three))
def where_positive(typing, one, two, three):
    """The second of three numbers or fours where the first is above zero, else the third."""
    found = FOUR if FOUR in (one, two, three) else NUMBER

    def code(context, builder, signature_, args):
        if found is FOUR:
            args = [_spread(builder, x) for x in args]
        zero = ir.Constant(VECTOR, [0.0] * 4) if found is FOUR else ir.Constant(DOUBLE, 0.0)
        return builder.select(builder.fcmp_ordered(">", args[0], zero), *args[1:])

    return found(one, two, three), code


@_instead_of(lambda one: np.full(4, one))
def spread(typing, one):
    """The same number four times."""
    return FOUR(one), lambda context, builder, signature_, args: _spread(builder, args[0])


@_instead_of(lambda *numbers: np.array(numbers))
def put_side_by_side(typing, i, j, k, l):
    """Four numbers as a four."""

    def code(context, builder, signature_, args):
        four = ir.Constant(VECTOR, ir.Undefined)
        for place, number in enumerate(args):
            four = builder.insert_element(four, number, ir.Constant(SHORT, place))
        return four

    return FOUR(i, j, k, l), code


@_instead_of(tuple)
def lanes(typing, four):
    """The four numbers of a four, one by one."""

    def code(context, builder, signature_, args):
        each = [builder.extract_element(args[0], ir.Constant(SHORT, k)) for k in range(4)]
        return context.make_tuple(builder, signature_.return_type, each)

    return types.UniTuple(NUMBER, 4)(four), code


def _transposed(builder, rows):
    """Four vectors of four numbers, rows as columns."""
    a, b, c, d = rows
    t = [_shuffled(builder, x, y, *at) for x, y in ((a, b), (c, d)) for at in ((0, 4, 2, 6), (1, 5, 3, 7))]
    return [_shuffled(builder, t[k], t[k + 2], *at) for at in ((0, 1, 4, 5), (2, 3, 6, 7)) for k in range(2)]


def _places(context, builder, table, kind, numbers, columns):
    """Pointers to the parts of four numbers of these rows: those of each row, part by part."""
    found = context.make_array(kind)(context, builder, table)
    out = []
    for number in numbers:
        wide = number if number.type == WIDE else builder.zext(number, WIDE)
        begin = builder.mul(wide, ir.Constant(WIDE, columns))
        spots = [builder.add(begin, ir.Constant(WIDE, 4 * k)) for k in range(columns // 4)]
        out.append([builder.bitcast(builder.gep(found.data, [at]), VECTOR.as_pointer()) for at in spots])
    return list(zip(*out, strict=True))


def _loading(columns: int):
    """The columns of four rows of a table that has so many, a multiple of four; rows stand behind each other."""

    def load(typing, table, i, j, k, l):
        def code(context, builder, signature_, args):
            out = []
            for part in _places(context, builder, args[0], table, args[1:], columns):
                rows = [builder.load(place) for place in part]
                for row in rows:
                    row.align = 8
                out += _transposed(builder, rows)
            return context.make_tuple(builder, signature_.return_type, out)

        return types.UniTuple(FOUR, columns)(table, i, j, k, l), code

    return load


def _storing(columns: int):
    """Write columns back to the rows of a table: see `_loading`."""

    def store(typing, table, i, j, k, l, values):
        def code(context, builder, signature_, args):
            fours = cgutils.unpack_tuple(builder, args[5], columns)
            for at, part in enumerate(_places(context, builder, args[0], table, args[1:5], columns)):
                for place, row in zip(part, _transposed(builder, fours[4 * at : 4 * at + 4]), strict=True):
                    builder.store(row, place).align = 8
            return context.get_dummy_value()

        return types.void(table, i, j, k, l, values), code

    return store


def _columns(table, *rows):
    return tuple(table[np.array(rows, dtype=np.int64)].T)  # numbers with sign and without: a list would be of floats


def _set_columns(table, i, j, k, l, values):
    table[np.array([i, j, k, l], dtype=np.int64)] = np.array(values).T


columns_of_8, columns_of_4 = (_instead_of(_columns)(_loading(n)) for n in (8, 4))
set_columns_of_8, set_columns_of_4 = (_instead_of(_set_columns)(_storing(n)) for n in (8, 4))


@_instead_of(lambda table, row, begin: table[int(row), int(begin) : int(begin) + 4].copy())
def numbers_of(typing, table, row, begin):
    """Four numbers of a ``row`` of a table, from column ``begin`` on."""

    def code(context, builder, signature_, args):
        value = builder.load(_numbers(context, builder, table, args))
        value.align = 8
        return value

    return FOUR(table, row, begin), code


@_instead_of(lambda table, row, begin, values: table[int(row)].__setitem__(slice(int(begin), int(begin) + 4), values))
def set_numbers_of(typing, table, row, begin, values):
    """Write four numbers to a ``row`` of a table, from column ``begin`` on."""

    def code(context, builder, signature_, args):
        builder.store(args[3], _numbers(context, builder, table, args)).align = 8
        return context.get_dummy_value()

    return types.void(table, row, begin, values), code


def _numbers(context, builder, kind, args):
    """Pointer to four numbers in a row of a table."""
    found = context.make_array(kind)(context, builder, args[0])
    row, begin = (x if x.type == WIDE else builder.zext(x, WIDE) for x in args[1:3])
    at = builder.mul(row, builder.extract_value(found.strides, 0))
    place = builder.gep(builder.bitcast(found.data, BYTES), [at])
    place = builder.gep(builder.bitcast(place, DOUBLE.as_pointer()), [begin])
    return builder.bitcast(place, VECTOR.as_pointer())


@_instead_of(lambda *rows: tuple(np.array(rows).T))
def transposed(typing, i, j, k, l):
    """Four rows of four numbers as columns, or columns as rows."""

    def code(context, builder, signature_, args):
        return context.make_tuple(builder, signature_.return_type, _transposed(builder, args))

    return types.UniTuple(FOUR, 4)(i, j, k, l), code


def _all_differ(a, b, one, two):
    taken = [k for k, mass in zip((*a, *b), (*one, *two), strict=True) if mass > 0.0]
    return len(set(taken)) == len(taken)


@_instead_of(_all_differ)
def apart(typing, a, b, one, two):
    """Whether four contacts act on different bodies, ``a`` and ``b`` (4,) each; ``one``, ``two``: inverse masses.

    Those without do not count: nothing acts on them.
    """

    def code(context, builder, signature_, args):
        numbers = ir.Constant(WHOLE, ir.Undefined)
        bodies = [x for tuple_ in args[:2] for x in cgutils.unpack_tuple(builder, tuple_, 4)]
        for k, body in enumerate(bodies):
            body = body if body.type == SHORT else builder.trunc(body, SHORT)
            numbers = builder.insert_element(numbers, body, ir.Constant(SHORT, k))
        none = ir.Constant(VECTOR, [0.0] * 4)
        free = [builder.fcmp_ordered(">", mass, none) for mass in args[2:]]
        free = _shuffled(builder, *free, *range(8))
        unlike = ir.Constant(WHOLE, [2**32 - 1 - k for k in range(8)])  # no bodies have these numbers
        numbers, same = builder.select(free, numbers, unlike), None
        for shift in range(1, 4):  # the two bodies of one contact, four places apart, differ
            turned = _shuffled(builder, numbers, numbers, *((k + shift) % 8 for k in range(8)))
            equal = builder.icmp_unsigned("==", numbers, turned)
            same = equal if same is None else builder.or_(same, equal)
        byte = ir.IntType(8)
        return builder.icmp_unsigned("==", builder.bitcast(same, byte), ir.Constant(byte, 0))

    return types.boolean(a, b, one, two), code


@_instead_of(lambda four: (four[0] + four[1]) + (four[2] + four[3]))
def total(typing, four):
    """The sum of four, in pairs."""

    def code(context, builder, signature_, args):
        a, b, c, d = (builder.extract_element(args[0], ir.Constant(SHORT, k)) for k in range(4))
        return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))

    return NUMBER(four), code
