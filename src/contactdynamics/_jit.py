"""The one place where Numba is configured: the decorator ``@kernel`` and the cache of machine code.

Numba's cache looks only at the file of the cached function: when a kernel calls another one of another file, and that
one changes, stale machine code goes on running. The cache directory is therefore named after the content of *all*
files that hold kernels. No ``fastmath``: NaN stays visible and runs repeat to the bit. ``error_model="numpy"``:
a division by zero gives inf or nan, as in NumPy, instead of a test on every division.
"""

import hashlib
import logging
import os
import shutil
import sys
import time
from pathlib import Path

import numba
from numba.core import event

CONSTANTS = ("state.py", "materials.py", "contract.py", "touches.py", "step.py")  # without kernels, but used by some
KEPT_CACHES = 3  # older versions' machine code to keep beside the current one


def _cache_root() -> Path:
    """Where machine code is kept: ``$CONTACTDYNAMICS_CACHE``, or the user's cache directory."""
    if "CONTACTDYNAMICS_CACHE" in os.environ:
        return Path(os.environ["CONTACTDYNAMICS_CACHE"])
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
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
        by_age = sorted((d for d in root.iterdir() if d.is_dir()), key=lambda d: d.stat().st_mtime, reverse=True)
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


class _Compilation(event.Listener):
    """Keeps the time that Numba's compiler takes, and says once that it is at work on our kernels.

    Numba tells of each function that it compiles, those within others included, and holds its lock meanwhile.
    """

    def __init__(self):
        self.seconds, self.cpu, self.depth, self.began, self.told = 0.0, 0.0, 0, (0.0, 0.0), False

    def on_start(self, event):
        if self.depth == 0:
            self.began = time.perf_counter(), time.process_time()
        self.depth += 1
        if not self.told and event.data["dispatcher"].py_func.__module__.startswith(__package__):
            self.told = True
            where = "once" if CACHE else "at each start: no folder can be written, set CONTACTDYNAMICS_CACHE to one"
            logging.getLogger(__package__).warning("compiling kernels, %s (half a minute or so)", where)

    def on_end(self, event):
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began[0]
            self.cpu += time.process_time() - self.began[1]


COMPILATION = _Compilation()
event.register("numba:compile", COMPILATION)


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
        return _own_types_only(numba.njit(cache=CACHE is not None, **options)(function))
    finally:
        numba.config.CACHE_DIR = before


def _own_types_only(dispatcher):
    """Keep what is compiled for named tuples of a user's program, such as a space of its own, out of the cache.

    The index of a kernel names the types that it was compiled for, and cannot be read where one of them is not found.
    """
    cache = getattr(dispatcher, "_cache", None)  # none where kernels are interpreted
    if hasattr(cache, "save_overload"):
        save = cache.save_overload
        cache.save_overload = lambda types, code: None if _foreign(getattr(types, "args", types)) else save(types, code)
    return dispatcher


def _foreign(types) -> bool:
    """Whether a named tuple among Numba's ``types``, or within them, is defined outside this package."""
    for one in types:
        made = getattr(one, "instance_class", None)
        if made is not None and made.__module__.partition(".")[0] != __package__:
            return True
        if _foreign(getattr(one, "types", ())):
            return True
    return False
