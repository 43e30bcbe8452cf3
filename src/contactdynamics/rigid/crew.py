"""Threads that wait for work, and how a kernel that one of them runs calls the others.

`enlist` is the first statement of a kernel that threads share. The first thread comes from Python, with arrays that
have been taken out of Python's objects; `enlist` leaves these, as they are, in a frame that all can read, with the
address of a function that calls the same kernel with them and another number of the thread. The others wait for it in
machine code and run it there: none of them takes an argument out of a named tuple, which takes 15 to 25 us for each
kernel of a step, nor waits for Python, which one thread has at a time. No address is compiled in: kernels are kept in
the cache as all others.

Work of other kinds, functions of Python and kernels that call nobody, is given out by Python (`Crew.run`).
"""

import contextlib
import ctypes
import sys
import threading

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import LoweringError
from numba.extending import intrinsic, lower_builtin, type_callable

from .._jit import kernel
from .fetch import lines

# Places in the array of counters, on lines of cache of their own: who has come and whether to stop; how often all have
# met; what is given out, by which call and by which function; how often it was done. What a kernel was called with
# stands behind them.
COME, STOP, FAILED, ROUND, JOB, CALL, THUNK, DONE, FRAME = 0, 1, 2, 8, 16, 17, 18, 24, 32
WORDS = 1024  # of a frame; the largest of our kernels takes 400
PAUSE = 20_000  # looks, 15 us: by then the first thread has left Python, of which there is one at a time
SLACK = 29  # PR_SET_TIMERSLACK, ns
NAPS = 30  # short sleeps, of some 60 us each or 6 (see `_sleep_lightly`), before a thread without work waits for a bell
SPINS = 120_000  # looks at the counter before a thread sleeps, 100 us: a sleep of 1 us takes some 60
SOON = 0.002  # s, where a kernel is on its way: some microseconds, or as long as it is being compiled
FOREVER = 1 << 62
WHOLE, BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
ENLISTED = ir.FunctionType(ir.IntType(32), [BYTES, WHOLE])  # (frame, thread) -> status

# A function of the operating system: usleep(us), Sleep(ms). Not sched_yield: on a machine with other work a thread that
# yields comes back after the time slices of all others, and 10 000 meetings took 24 s in the place of 1.
sleep = types.ExternalFunction("Sleep" if sys.platform == "win32" else "usleep", types.void(types.uint32))
SHORTEST = np.uint32(0 if sys.platform == "win32" else 1)


def counters() -> np.ndarray:
    """Those of a crew, with room for a frame."""
    return lines(FRAME // 8 + WORDS // 8, dtype=np.int64).ravel()


def _place(context, builder, kind, array, at):
    """Pointer to an element of an int64 array."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


@intrinsic
def add(typing, counters, at, value):
    """Atomic counters[at] += value; returns the value before."""

    def code(context, builder, signature, args):
        place = _place(context, builder, signature.args[0], *args[:2])
        return builder.atomic_rmw("add", place, args[2], "seq_cst")

    return types.int64(counters, types.int64, types.int64), code


@intrinsic
def load(typing, counters, at):
    """Atomic read of counters[at]."""

    def code(context, builder, signature, args):
        return builder.load_atomic(_place(context, builder, signature.args[0], *args), "seq_cst", 8)

    return types.int64(counters, types.int64), code


def unowned(context, builder, kind, value):
    """A ``value`` whose arrays have no owner: the counts of references to them end with the call that got them."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo, array.parent = (ir.Constant(x.type, None) for x in (array.meminfo, array.parent))
        return array._getvalue()
    for k, one in enumerate(kind if isinstance(kind, types.BaseTuple) else ()):
        part = unowned(context, builder, one, builder.extract_value(value, k))
        value = builder.insert_value(value, part, k)
    return value


# ---- a kernel that calls the others ----------------------------------------------------------------------------------


def enlist(meeting):
    """Let the others of the crew run the kernel whose first statement this is, the last argument of which it gets.

    Nothing happens on one thread, in the others, in a kernel that another one calls, and where Python gives out the
    work: it calls a kernel by this way only after it has raised `CALL`.
    """


@type_callable(enlist)
def _type_of_enlist(context):
    return lambda meeting: types.none


@lower_builtin(enlist, types.Any)
def _enlist(context, builder, signature, args):
    """Leave the arguments of the kernel in the frame, then raise `JOB`."""
    kind, called = signature.args[0], builder.function
    meeting = {name: builder.extract_value(args[0], k) for k, name in enumerate(kind.fields)}
    data = _place(context, builder, kind[0], meeting["counters"], ir.Constant(WHOLE, 0))
    given = called.args[2:]  # after those for the result and for an error
    frame = ir.LiteralStructType([value.type for value in given])
    if context.get_abi_sizeof(frame) > 8 * WORDS:
        raise LoweringError(f"{called.name} has arguments of {context.get_abi_sizeof(frame)} bytes; raise crew.WORDS.")

    def place(at):
        return builder.gep(data, [ir.Constant(WHOLE, at)])

    one = ir.Constant(WHOLE, 1)
    first = builder.icmp_signed("<", meeting["thread"], one)
    with builder.if_then(builder.and_(first, builder.icmp_signed(">", meeting["threads"], one))):
        before = builder.load(place(JOB))
        with builder.if_then(builder.icmp_signed(">", builder.load(place(CALL)), before)):
            there = builder.bitcast(place(FRAME), frame.as_pointer())
            for k, value in enumerate(given):
                builder.store(value, cgutils.gep_inbounds(builder, there, 0, k))
            thunk = _thunk(context, called, frame, kind.fields.index("thread"))
            builder.store(builder.ptrtoint(thunk, WHOLE), place(THUNK))
            builder.atomic_rmw("add", place(JOB), one, "seq_cst")
    return context.get_dummy_value()


def _thunk(context, called, frame, thread):
    """A function (frame, thread) -> status that calls the kernel ``called`` and drops its result.

    Its arrays have no owner: those of the first thread end with its call, which may be over before this one.
    """
    thunk, described = ir.Function(called.module, ENLISTED, f"{called.name}.enlisted"), context.fndesc
    thunk.linkage = "internal"
    builder = ir.IRBuilder(thunk.append_basic_block())
    there = builder.bitcast(thunk.args[0], frame.as_pointer())
    flat = [builder.load(cgutils.gep_inbounds(builder, there, 0, k)) for k in range(len(frame.elements))]
    given = context.get_arg_packer(described.argtypes).from_arguments(builder, flat)
    given = [unowned(context, builder, kind, value) for kind, value in zip(described.argtypes, given, strict=True)]
    given[-1] = builder.insert_value(given[-1], thunk.args[1], thread)
    status, result = context.call_conv.call_function(builder, called, described.restype, described.argtypes, given)
    if context.enable_nrt:
        context.nrt.decref(builder, described.restype, result)
    builder.ret(status.code)
    return thunk


@intrinsic
def _run_enlisted(typing, counters, thread):
    """Run what `enlist` has left as this ``thread``; not 0 where it raises."""

    def code(context, builder, signature, args):
        frame, thunk = (_place(context, builder, signature.args[0], args[0], ir.Constant(WHOLE, at))
                        for at in (FRAME, THUNK))  # fmt: skip
        function = builder.inttoptr(builder.load(thunk), ENLISTED.as_pointer())
        return builder.sext(builder.call(function, [builder.bitcast(frame, BYTES), args[1]]), WHOLE)

    return types.int64(counters, types.int64), code


# ---- threads ---------------------------------------------------------------------------------------------------------


@kernel
def _until(counters, at, value, naps):
    """Wait until counters[at] is ``value``; False where it is not after so many ``naps``."""
    spins = 0
    while load(counters, at) != value:
        spins += 1
        if spins > SPINS:
            if spins > SPINS + naps:
                return False
            sleep(SHORTEST)
    return True


@kernel
def _count(counters, at):
    """Count one more."""
    add(counters, at, 1)


@kernel
def _work(counters, number, thread):
    """Run what kernels call the others for, from this ``number`` on; the number of what was not there, or Python's."""
    while _until(counters, JOB, number, NAPS):
        if counters[THUNK] == 0:
            for _ in range(PAUSE):
                if load(counters, STOP) != 0:
                    break
            break
        if _run_enlisted(counters, thread) != 0:
            add(counters, FAILED, 1)
            add(counters, STOP, 1)
        add(counters, DONE, 1)
        number += 1
    return number


class Crew:
    """Threads that wait for work: they look out for it as those do that meet, then sleep until a bell rings.

    From one kernel to the next of a step some 50 us pass, and to wake a thread by the operating system takes as long.
    """

    def __init__(self, size: int):
        self.counters, self._job, self._errors = counters(), None, []
        self._now = memoryview(self.counters)  # what Python reads and writes of them, sooner than by NumPy
        self._asleep = set()  # the bells of those that wait for one
        self.threads = [threading.Thread(target=_serve, args=(self, k + 1), daemon=True) for k in range(size)]
        for thread in self.threads:
            thread.start()

    def run(self, function, arguments, meetings):
        """The result of the ``function`` with the first of the ``meetings``; the others call it with theirs.

        An error of one lets all others go, and is raised. Who is done is waited for also where the first one raises,
        or is interrupted: they may have its arrays.
        """
        now, size, call = self._now, len(self.threads), getattr(function, "call", function)
        number = now[JOB] + 1
        try:
            if getattr(function, "enlists", False):
                now[CALL] = number
                if self._asleep:
                    self._ring()
            else:
                self._give_out(call, arguments, meetings)
            result = call(*arguments, meetings[0])
            _until(self.counters, DONE, size * number, FOREVER)
        except BaseException:
            now[STOP] = 1
            if now[JOB] == number:
                _until(self.counters, DONE, size * number, FOREVER)
            now[CALL] = now[JOB]  # it raised before it called anybody
            self._begin_again()
            raise
        if now[STOP] or self._job is not None:
            errors = self._begin_again()
            if errors:
                raise errors[0]
        return result

    def _begin_again(self) -> list:
        """Forget the work, and that it was stopped; returns the errors of it."""
        if self._now[FAILED] and not self._errors:
            what = "A kernel raised an error on another thread than the first; threads=1 says which."
            self._errors.append(RuntimeError(what))
        if self._now[STOP]:
            self.counters[:JOB] = 0
        self._job, self._errors, errors = None, [], self._errors
        return errors

    def _give_out(self, *job) -> None:
        """Let Python call a function on all threads; without one they end."""
        self._job, self._now[THUNK] = job, 0
        _count(self.counters, JOB)
        self._ring()

    def _ring(self) -> None:
        for bell in tuple(self._asleep):
            bell.set()

    def dismiss(self) -> None:
        """End the threads, which wait."""
        if self.threads:
            self._give_out()

    def work(self, thread: int, number: int, bell) -> int:
        """Wait for the work of this ``number`` and do it; returns the next number, 0 where there is no more of it."""
        number, now = _work(self.counters, number, thread), self._now
        if now[JOB] < number:
            self._asleep.add(bell)
            if now[JOB] < number:
                bell.wait(None if now[CALL] < number else SOON)
            self._asleep.discard(bell)
            bell.clear()
            return number
        if now[THUNK]:  # it has just come
            return number
        if not self._job:
            return 0
        function, arguments, meetings = self._job
        try:
            function(*arguments, meetings[thread])
        except BaseException as error:
            self._errors.append(error)
            now[STOP] = 1
        _count(self.counters, DONE)
        return number + 1


def _sleep_lightly() -> None:
    """Let the short sleeps of this thread end when they should, on Linux: else they are 50 us longer, to save power."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(SLACK, ctypes.c_ulong(1000), 0, 0, 0)


def _serve(crew: Crew, thread: int) -> None:
    """A thread of the crew."""
    _sleep_lightly()
    number, bell = 1, threading.Event()
    while number:
        number = crew.work(thread, number, bell)
