"""What Numba's compiler need not do for our kernels, left out: a third of the time of compilation.

Five things, none of which changes what a kernel computes. Each is a guess at how Numba is built inside; where a version
is built otherwise, that one is left undone (``tests/house/test_lean.py`` says which).

1. Numba looks up functions by the compiler's options, and hashes and compares some forty of them each time, 100 000
   times for a small program (`compare_options_quickly`).
2. For each ``a + b`` it tries all meanings that ``+`` can have, words and dates included, though it was asked the same
   a line above (`remember_operators`).
3. It counts references to every array in every function that an array passes through. A kernel that makes no array
   holds none longer than its caller does, and needs no count (`Uncounted`).
4. Where an array is put into a part of another one, it compiles what is needed to write both shapes into a message, all
   of Python's strings, 2 to 3 s for each kernel that does it (`short_messages`).
5. Python looks for garbage each time that some objects were made, and the compiler makes millions and keeps most
   (`no_collection`, a seventh of the time).
"""

import gc
from contextlib import contextmanager

from numba.core import ir, types
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.registry import cpu_target
from numba.core.targetconfig import TargetConfig
from numba.extending import overload
from numba.np import arrayobj

PLAIN = (types.Number, types.Boolean, types.Literal, types.Array)
GIVEN = {"getattr", "static_getattr", "getitem", "static_getitem", "typed_getitem", "build_tuple", "cast", "phi"}


def compare_options_quickly(options=TargetConfig) -> bool:
    """Let options that were set alike be equal at once, all with one hash. False if this Numba is built otherwise."""
    if getattr(options, "__slots__", None) != ["_values"]:
        return False
    by_all = options.__eq__

    def __eq__(self, other):
        if type(self) is type(other) and self._values.keys() == other._values.keys():
            return self._values == other._values
        return by_all(self, other)

    def __hash__(self):
        return hash(type(self))  # few differ in one process

    options.__eq__, options.__hash__ = __eq__, __hash__
    return True


def remember_operators(context=None) -> bool:
    """Let a typing context answer the second of two equal questions from memory. False if Numba is otherwise.

    Only what has one meaning for all compiler options is kept: functions that are written in Numba's own Python are
    compiled for each set of options, and the last one asked for counts.
    """
    context = cpu_target.typing_context if context is None else context
    resolve, known = getattr(context, "resolve_function_type", None), {}
    if resolve is None or not hasattr(types.Function, "get_impl_key"):
        return False

    def remembered(function, args, kws):
        args = tuple(args)
        if kws or not isinstance(function, types.Function) or not all(map(_is_plain, args)):
            return resolve(function, args, kws)
        found = known.get((function, args))
        if found is None:
            found = resolve(function, args, kws)
            if found is not None and function.get_impl_key(found) is function.typing_key:
                known[function, args] = found
        return found

    context.resolve_function_type = remembered
    return True


def _is_plain(kind) -> bool:
    return isinstance(kind, PLAIN) or (isinstance(kind, types.BaseTuple) and all(map(_is_plain, kind)))


def _refuse(source, target):
    """Stands for Numba's function that writes both shapes into a message."""


@overload(_refuse)
def _refuse_in_kernels(source, target):
    def refuse(source, target):
        raise ValueError("an array does not have the shape of the place where it is put")

    return refuse


@contextmanager
def short_messages():
    """Our kernels are compiled with a message without shapes; those of others keep theirs."""
    kept = getattr(arrayobj, "raise_with_shape_context", None)
    if kept is None:  # another version of Numba
        yield False
        return
    arrayobj.raise_with_shape_context = _refuse
    try:
        yield True
    finally:
        arrayobj.raise_with_shape_context = kept


@contextmanager
def no_collection():
    """No search for garbage meanwhile; as it was before afterwards."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@register_pass(mutates_CFG=False, analysis_only=True)
class Uncounted(AnalysisPass):
    """Before the lowering: no counts of references where the kernel has arrays only from its caller."""

    _name = "contactdynamics_uncounted"

    def __init__(self):
        AnalysisPass.__init__(self)

    def run_pass(self, state):
        if not _keeps_counts(state):
            state.targetctx = state.targetctx.subtarget(enable_nrt=False)
            state.targetctx.__dict__.pop("nrt", None)  # the copy of an object that counts
        return False


def _keeps_counts(state) -> bool:
    """Whether a typed kernel makes arrays, gives one back, or does what might make one: all that is not known."""
    known = {}

    def counted(kind):
        if kind not in known:
            try:
                known[kind] = state.targetctx.data_model_manager[kind].contains_nrt_meminfo()
            except (KeyError, NotImplementedError):  # a type without a form in memory
                known[kind] = True
        return known[kind]

    def holds(variable):
        return counted(state.typemap[variable.name])

    def keeps(statement):
        if isinstance(statement, (ir.SetItem, ir.StaticSetItem)):
            return holds(statement.value) or holds(getattr(statement, "index_var", None) or statement.index)
        if not isinstance(statement, ir.Assign):
            return not isinstance(statement, (ir.Jump, ir.Branch, ir.Return, ir.Del))
        value = statement.value
        if not isinstance(value, ir.Expr):
            return isinstance(value, ir.Yield) or (holds(statement.target) and not isinstance(value, (ir.Arg, ir.Var)))
        if value.op == "call":
            return _call_keeps(state.typemap[value.func.name], [*value.args, value.vararg], statement.target, holds)
        if value.op in ("getitem", "static_getitem", "typed_getitem"):
            index = value.index_var if value.op == "static_getitem" else value.index
            return index is not None and holds(index)
        return holds(statement.target) and value.op not in GIVEN

    if counted(state.return_type):
        return True
    return any(keeps(statement) for block in state.func_ir.blocks.values() for statement in block.body)


def _call_keeps(function, given, target, holds) -> bool:
    """Whether a call makes an array or may do so: known are kernels, types of numbers, named tuples and mathematics.

    What ``borrows`` says that the arrays it gives are held by others.
    """
    chosen = getattr(function, "typing_key", None)
    if isinstance(function, types.NamedTupleClass) or getattr(chosen, "borrows", False):
        return False
    if holds(target):
        return True
    if isinstance(function, (types.Dispatcher, types.NumberClass)):
        return False
    if getattr(chosen, "__module__", "").partition(".")[0] == __package__:
        return False  # a function of ours that chooses a kernel by type
    return not isinstance(function, types.Function) or any(v is not None and holds(v) for v in given)
