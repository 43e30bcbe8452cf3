"""What the compiler leaves out for our kernels changes nothing that they compute (`_lean`)."""

import gc
import operator
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core import runtime, types
from numba.core.compiler import Flags
from numba.core.registry import cpu_target

from contactdynamics import _jit, _lean
from contactdynamics._jit import kernel


def test_options_of_the_compiler_are_equal_where_all_of_them_are():
    plain, same, other = Flags(), Flags(), Flags()
    same.nrt = plain.nrt  # stated, though it is the default
    other.nrt = not plain.nrt
    assert plain == same and hash(plain) == hash(same) and plain != other and plain != 1
    assert {plain: 1}[same] == 1 and other not in {plain: 1}
    fast = Flags()
    fast.fastmath = True
    assert fast != plain and fast == fast.copy()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "eq", "and_", "neg"])
def test_operators_mean_what_they_mean_the_second_time(name):
    context = cpu_target.typing_context
    context.refresh()  # as before each compilation
    function = context.resolve_value_type(getattr(operator, name))
    kinds = [types.int64, types.float64, types.boolean, types.int32, types.complex128]
    asked = type(context).resolve_function_type  # what Numba itself says
    for first in kinds:
        for args in [(first,)] if name == "neg" else [(first, second) for second in kinds]:

            def answer(how, *given, args=args):
                try:
                    return how(*given, function, args, {})
                except Exception as error:
                    return type(error)

            expected = answer(asked, context)
            assert answer(context.resolve_function_type) == answer(context.resolve_function_type) == expected


@kernel
def inner(x):
    return x[0] + x[-1]


@kernel
def uncounted(x, k):
    row = x[k]
    row[0] = 7.0
    return inner(x[k, 1:]) + row[0]


@kernel
def made(n):
    x = np.zeros((n, 3))
    return x, uncounted(x, 0)


@kernel
def some(x, which):
    return x[which].sum() + uncounted(x, 1)


@kernel
def handed(x):
    return x[1:]


def test_arrays_live_as_long_as_they_are_held():
    # a count too few frees memory that is in use, one too many keeps it for ever
    rtsys = runtime.rtsys
    runtime._nrt_python.memsys_enable_stats()
    x = np.arange(12.0).reshape(4, 3)
    assert uncounted(x, 1) == 4.0 + 5.0 + 7.0 and x[1, 0] == 7.0
    gc.collect()
    before = rtsys.get_allocation_stats()
    for _ in range(20):
        new, value = made(5)
        assert value == 7.0 and new.shape == (5, 3) and (new[1:] == 0).all()
        assert some(x, np.array([0, 2])) == x[[0, 2]].sum() + uncounted(x, 1)
        part = handed(x)
        assert part.base is not None and (part == x[1:]).all()
        held = sys.getrefcount(x)
    del new, part
    gc.collect()
    after = rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0
    assert sys.getrefcount(x) == held - 1


OLD = numba.__version__.startswith("0.60.")
SHAPES = """
import numpy as np, numba
from contactdynamics._jit import kernel

def put(x, y):
    x[:] = y

for wrap in (numba.njit, kernel):
    compiled, x = wrap(put), np.zeros((2, 2))
    compiled(x, np.ones((2, 2)))
    assert (x == 1).all()
    try:
        compiled(x, np.ones((3, 2)))
    except ValueError as error:
        print(error)
"""


def test_arrays_of_another_shape_are_refused_and_others_keep_their_message(tmp_path):
    script = tmp_path / "shapes.py"
    script.write_text(SHAPES)
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    others, ours = said.splitlines()
    if OLD:  # without shapes there, and so without anything to shorten
        assert others == ours == "cannot assign slice from input of different size"
    else:
        assert others == "cannot assign slice of shape (2, 2) from input of shape (3, 2)"
        assert ours == "an array does not have the shape of the place where it is put"


OWN = """
import numpy as np, numba
from numba.core.codegen import JITCodeLibrary
from contactdynamics._jit import kernel

made, finish = [], JITCodeLibrary._finalize_final_module

def finalize(self):
    made.append(self.name)
    finish(self)

JITCodeLibrary._finalize_final_module = finalize

def order(x, n):
    return np.sort(x)[n] + x.sum() + np.argmax(x) + x.reshape(2, 2).T.copy()[0, 1]

x = np.array([3.0, 1.0, 4.0, 1.5])
for wrap in (kernel, numba.njit, kernel):  # ours, then others with what ours has made
    print(wrap(order)(x, 1), *[name for name in made if name != "nrt"])  # which is made once
    made.clear()
print(numba.njit(lambda x: np.sort(x)[0])(x), numba.njit(lambda x: np.sort(x)[0] + x.sum() + 0.5)(x))
"""


def test_numbas_own_functions_go_into_the_kernels_that_call_them(tmp_path):
    script = tmp_path / "own.py"
    script.write_text(OWN)
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True,
                          env={**os.environ, "CONTACTDYNAMICS_CACHE": str(tmp_path)}).stdout.splitlines()  # fmt: skip
    ours, others, again = (line.split() for line in said[:3])
    assert ours[0] == others[0] == again[0] == "17.0"  # 1.5 + 9.5 + 2 + 4
    assert ours[1:] == ["order"] and "order" in others  # one piece of machine code, and nothing beside it
    assert said[3] == "1.0 11.0"


def test_this_version_of_numba_is_built_as_was_guessed():
    class Copy(_lean.TargetConfig):
        __slots__ = ("_values",)

    Copy.__slots__ = ["_values"]
    assert _lean.compare_options_quickly(Copy)
    with _lean.short_messages() as short:
        assert short is not OLD
    assert cpu_target.typing_context.resolve_function_type.__module__ == _lean.__name__


def test_garbage_is_collected_again_after_a_compilation(monkeypatch):
    monkeypatch.setattr(_jit, "CACHE", None)  # compiled in each run of the test
    seen = []

    @kernel
    def twice(x):
        return 2.0 * x

    asked = twice._compiler.compile

    def look(*given):
        seen.append(gc.isenabled())
        return asked(*given)

    twice._compiler.compile = look
    assert twice(2.0) == 4.0 and seen == [False] and gc.isenabled()
    with pytest.raises(ZeroDivisionError), _lean.no_collection():
        raise ZeroDivisionError
    assert gc.isenabled()
    gc.disable()
    try:
        with _lean.no_collection():
            pass
        assert not gc.isenabled()  # somebody else's wish
    finally:
        gc.enable()
