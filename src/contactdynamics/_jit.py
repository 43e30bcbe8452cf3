"""The one place where Numba is configured: the decorator ``@kernel`` and the cache of machine code.

Numba's cache looks only at the file of the cached function: when a kernel calls another one of another file, and that
one changes, stale machine code goes on running. The cache directory is therefore named after the content of *all*
files that hold kernels. No ``fastmath``: NaN stays visible and runs repeat to the bit. ``error_model="numpy"``:
a division by zero gives inf or nan, as in NumPy, instead of a test on every division.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

import numba

CONSTANTS = ("state.py", "materials.py")  # files without kernels whose constants kernels use
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


def compiled(module: str) -> bool:
    """Whether machine code of the kernels in ``module`` (such as "gauss_seidel") is in the cache."""
    return CACHE is not None and any(Path(CACHE).rglob(f"{module}.*.nbi"))


def kernel(function=None, /, *, inline=False, contract=False):
    """Compile ``function`` with the package's options; arrays in, arrays out, no objects.

    ``inline=True`` is for small helpers called in hot loops; they are inlined by LLVM, not by Numba. ``contract=True``
    allows a product and a sum in one rounding (FMA), and nothing else of fast-math: NaN stays visible, runs repeat.
    """
    if function is None:
        return lambda f: kernel(f, inline=inline, contract=contract)
    options = {"error_model": "numpy", "nogil": True, "fastmath": {"contract"} if contract else False}
    if inline:
        options["forceinline"] = True
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = CACHE or before
    try:
        return numba.njit(cache=CACHE is not None, **options)(function)
    finally:
        numba.config.CACHE_DIR = before
