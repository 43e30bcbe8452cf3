"""One writer for each result file: two runs that add to the same one would each throw the other's frames away.

The lock lies beside the file, because that one is replaced whenever it is written; the system lets it go when its
process ends, however it ends. Where there are no such locks (Windows, some network drives), nobody is refused.
"""

import atexit
import contextlib
import os
from pathlib import Path

from ..errors import RecordingError

_HELD = {}  # path of a result file -> the open file of its lock


def lock_of(path: Path) -> Path:
    """The file beside ``path`` that is locked."""
    return path.with_name(f".{path.name}.lock")


def hold(path: Path) -> None:
    """Be the process that writes ``path``; where another one is, that is told."""
    key = path.resolve()
    if key in _HELD:
        return
    try:
        import fcntl
    except ImportError:
        return
    lock = lock_of(key)
    while True:
        try:
            file = lock.open("a+")
        except OSError:  # then the file itself cannot be written either, and says so
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().strip()
            file.close()
            raise RecordingError(
                f"{path} is being written by another process{f', number {owner}' * bool(owner)}; wait until it ends or "
                "stop it, or give another file."
            ) from None
        except OSError:
            file.close()
            return
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                break
        file.close()  # its owner removed it in the meantime
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    _HELD[key] = file


def release(path: Path) -> None:
    """Let others write ``path``."""
    key = path.resolve()
    file = _HELD.pop(key, None)
    if file is not None:
        with contextlib.suppress(OSError):
            lock_of(key).unlink()
        file.close()


@atexit.register
def _release_all() -> None:
    for path in list(_HELD):
        release(path)
