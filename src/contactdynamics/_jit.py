"""The one place where Numba is configured: the decorator ``@kernel`` and the cache of machine code.

Numba's cache looks only at the file of the cached function: when a kernel calls another one of another file, and that
one changes, stale machine code goes on running. The cache directory is therefore named after the content of *all*
files that hold kernels. No ``fastmath``: NaN stays visible and runs repeat to the bit. ``error_model="numpy"``:
a division by zero gives inf or nan, as in NumPy, instead of a test on every division.
"""

import hashlib
import logging
import os
import re
import shutil
import sys
import time
from pathlib import Path

import numba
from numba._dispatcher import compute_fingerprint
from numba.core import compiler, event, sigutils, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typed_passes import IRLegalization

from . import _ahead, _lean

CONSTANTS = (
    "state.py",
    "materials.py",
    "contract.py",
    "touches.py",
    "fours.py",
    "fetch.py",
    "step.py",
    "_lean.py",
)  # without kernels, but used by some
OWN = re.compile("[0-9a-f]{16}")  # names of folders with machine code
CALLS = 3  # of a kernel, after which its types are taken for settled
KEPT_CACHES = 3  # older versions' machine code to keep beside the current one


def _home() -> Path:
    """The user's home; for one without a home, a place where nothing can be written."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.devnull)


def _cache_root() -> Path:
    """Where machine code is kept: ``$CONTACTDYNAMICS_CACHE``, or the user's cache directory."""
    if os.environ.get("CONTACTDYNAMICS_CACHE"):
        return Path(os.environ["CONTACTDYNAMICS_CACHE"])
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", _home()))
    elif sys.platform == "darwin":
        base = _home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", _home() / ".cache"))
    return base / "contactdynamics"


def _fingerprint() -> str:
    """A hash of all files of the package that hold kernels or what kernels import, 16 hexadecimal digits."""
    package = Path(__file__).parent
    digest = hashlib.sha256(f"{numba.__version__} {numba.config.BOUNDSCHECK}".encode())
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"@kernel" in source or path.name in CONSTANTS:
            digest.update(source)
    return digest.hexdigest()[:16]


def _prepare_cache() -> str | None:
    """The cache directory of this version, created; ``None`` where nothing can be written (then nothing is cached)."""
    root = _cache_root()
    directory = root / _fingerprint()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        os.utime(directory)
        ours = (d for d in root.iterdir() if OWN.fullmatch(d.name) and d.is_dir())  # the folder may hold others' things
        by_age = sorted(ours, key=lambda d: d.stat().st_mtime, reverse=True)
    except OSError:
        return None
    for old in by_age[KEPT_CACHES:]:
        shutil.rmtree(old, ignore_errors=True)
    return str(directory)


def _load_without_blas() -> None:
    """Load Numba's array functions without SciPy's linear algebra.

    They load it, 0.2 s at each start, to find out whether it is there, and no kernel needs it. Those of other packages
    that do load it by themselves.
    """
    try:
        from numba.np import linalg

        kept, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    except (ImportError, AttributeError):  # another version of Numba: let it do as it likes
        return
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = kept


CACHE = _prepare_cache()
_load_without_blas()
_lean.compare_options_quickly()
_lean.remember_operators()


class _Compilation(event.Listener):
    """Keeps the time that Numba's compiler takes, and says once that it is at work on our kernels.

    Numba tells of each function that it compiles, those within others included, and holds its lock meanwhile.
    """

    def __init__(self):
        self.seconds, self.cpu, self.depth, self.began, self.told = 0.0, 0.0, 0, (0.0, 0.0), False
        self.ours = 0  # kernels of this package at work, each within the one before

    def on_start(self, event):
        if self.depth == 0:
            self.began = time.perf_counter(), time.process_time()
        self.depth += 1
        if not self.told and event.data["dispatcher"].py_func.__module__.startswith(__package__):
            self.told = True
            where = "once" if CACHE else "at each start: no folder can be written, set CONTACTDYNAMICS_CACHE to one"
            logging.getLogger(__package__).warning("compiling kernels, %s (half a minute or so)", where)
            if CACHE:
                _ahead.start()

    def on_end(self, event):
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began[0]
            self.cpu += time.process_time() - self.began[1]


COMPILATION = _Compilation()
event.register("numba:compile", COMPILATION)


class _Part(JITCodeLibrary):
    """A kernel compiled because another one calls it: it goes into that one's machine code, and has none of its own.

    To optimise and translate it alone as well would take a fifth of the time of compilation.
    """

    exact = True  # no product and sum in one rounding: otherwise the order of optimisations decides which are joined

    def _optimize_final_module(self):
        if not self.exact:  # the others are left to the kernels that call them
            super()._optimize_final_module()

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        """None."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self):
        return self

    def set_env(self, name, env):
        """Nothing to set."""


def _as_part(state) -> None:
    """Let what is about to be compiled be a part."""
    state.flags.no_cpython_wrapper = True
    state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
    state.library.exact = not state.flags.fastmath
    state.library.enable_object_caching()


def _make_parts_of_numbas_own() -> None:
    """Let Numba's own functions, such as a sum over an array, be parts of the kernels that call them.

    Python never calls them: each is behind a name of NumPy or of Python. They are more than our kernels.
    """
    define = compiler.Compiler.define_pipelines

    def define_pipelines(self):
        if COMPILATION.ours and type(self) is compiler.Compiler and self.state.func_id.modname.startswith("numba."):
            _as_part(self.state)
        return define(self)

    compiler.Compiler.define_pipelines = define_pipelines


_make_parts_of_numbas_own()


class _Compiler(compiler.Compiler):
    """Numba's compiler, which makes parts (`_Part`) of the kernels that others call, and whole ones of the others."""

    def define_pipelines(self):
        if COMPILATION.depth > 1:
            _as_part(self.state)
        pipelines = super().define_pipelines()
        for passes in pipelines:
            passes.add_pass_after(_lean.Uncounted, IRLegalization)
            passes.finalize()
        return pipelines


def clock() -> float:
    """Seconds on a clock that stands still while kernels are compiled: what steps take, in the first run too."""
    return time.perf_counter() - COMPILATION.seconds


def cpu_clock() -> float:
    """Seconds of CPU that this process has taken, those of the compiler left out."""
    return time.process_time() - COMPILATION.cpu


def kernel(function=None, /, *, inline=False, contract=False):
    """Compile ``function`` with the package's options; arrays in, arrays out, no objects.

    ``inline=True`` is for small helpers called in hot loops; they are inlined by LLVM, not by Numba. ``contract=True``
    allows a product and a sum in one rounding (FMA), and nothing else of fast-math: NaN stays visible, runs repeat.
    """
    if function is None:
        return lambda f: kernel(f, inline=inline, contract=contract)
    # Without the wrapper for callers in C, which nobody uses: a tenth of the time of compilation.
    options = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
    options["fastmath"] = {"contract"} if contract else False
    if inline:
        options["forceinline"] = True
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = CACHE or before
    try:
        if numba.config.DISABLE_JIT:
            return function
        made = _Parts(numba.njit(cache=CACHE is not None, pipeline_class=_Compiler, **options)(function)).dispatcher
    finally:
        numba.config.CACHE_DIR = before
    made.enlists = "enlist" in function.__code__.co_names  # whether it calls other threads by itself: see `rigid.crew`
    made.settled = {}  # machine code by Numba's short mark of the arguments: see `Settled`
    return made


class Settled:
    """A kernel that is called with arguments of the same types each time: after some calls Numba looks at none of them.

    That takes 0.1 us for each array of a named tuple, in a small scene a sixth of a step. Whoever keeps one makes it
    anew where the type of an argument may have changed: nothing sees that it has. ``call`` is the machine code itself
    by then; at once where another one has settled for such arguments before, which their short mark says.
    """

    __slots__ = ("_kernel", "_left", "call", "enlists")

    def __init__(self, function):
        self._kernel, self._left, self.call = function, CALLS, self._look
        self.enlists = getattr(function, "enlists", False)

    @property
    def kernel(self):
        """The kernel itself, for arguments of other types."""
        return self._kernel

    def __call__(self, *arguments):
        return self.call(*arguments)

    def _look(self, *arguments):
        """Call it as any kernel; after `CALLS` of them find what was compiled for these types."""
        known = getattr(self._kernel, "settled", None)
        if known is None:  # kernels are not compiled
            return self._kernel(*arguments)
        mark = _mark(arguments)
        if mark in known:
            self.call = known[mark]
            return self.call(*arguments)
        result, self._left = self._kernel(*arguments), self._left - 1
        if self._left <= 0:
            found = list(self._kernel.overloads.values())
            if len(found) > 1:  # to look at all types takes up to a millisecond
                found = [self._kernel.overloads[tuple(map(self._kernel.typeof_pyval, arguments))]]
            self.call = found[0].entry_point
            if mark is not None:
                known[mark] = self.call
        return result


def _mark(arguments) -> bytes | None:
    """Numba's short mark of the types of arguments; None where there is none of some object."""
    try:
        return compute_fingerprint(arguments)
    except NotImplementedError:
        return None


class _Parts:
    """Lets a dispatcher of Numba have parts (`_Part`) for kernels that call it, and whole kernels for Python.

    Not in the cache are parts, and what is compiled for named tuples of a user's program, such as a space of its own:
    the index of a kernel names the types that it was compiled for, and cannot be read where one of them is not found.
    """

    def __init__(self, dispatcher):
        self.dispatcher = dispatcher
        self._compile, dispatcher.compile = dispatcher.compile, self.compile
        self._add, dispatcher.add_overload = dispatcher.add_overload, self.add
        self._save, dispatcher._cache.save_overload = dispatcher._cache.save_overload, self.save

    def compile(self, signature):
        """Compile for these types; a part that Python calls is made whole."""
        types, known = tuple(sigutils.normalize_signature(signature)[0]), self.dispatcher.overloads
        with global_compiler_lock:  # no other thread compiles: it may be at work on a kernel that needs the part
            if COMPILATION.depth == 0 and types in known and isinstance(known[types].library, _Part):
                del known[types]
            COMPILATION.ours += 1
            try:
                with _lean.short_messages(), _lean.no_collection():
                    return self._compile(signature)
            finally:
                COMPILATION.ours -= 1

    def add(self, code) -> None:
        """Enter what was compiled; a part is not for Python."""
        if isinstance(code.library, _Part):
            self.dispatcher.overloads[tuple(code.signature.args)] = code
        else:
            self._add(code)

    def save(self, signature, code) -> None:
        """Keep whole kernels for types of this package."""
        if not isinstance(code.library, _Part) and not _foreign(getattr(signature, "args", signature)):
            self._save(signature, code)


def _foreign(kinds) -> bool:
    """Whether a named tuple among Numba's types, or within them, is defined outside this package."""
    for one in kinds:
        made = getattr(one, "instance_class", None)
        if made is not None and made.__module__.partition(".")[0] != __package__:
            return True
        if _foreign(getattr(one, "types", ())) or (isinstance(one, types.CPointer) and _foreign([one.dtype])):
            return True
    return False
