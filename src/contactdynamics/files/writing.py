"""HDF5 files that are replaced as a whole, or not at all.

The HDF5 library crashes the whole process when a disk runs full under it (measured with HDF5 2.0: a segmentation
fault on closing the file). So it writes through `_Patient`, which never tells it of an error: what finds no room is
kept in memory, the library closes the file in peace, and then the error is raised and the file thrown away.
"""

import contextlib
import os
import shutil
from pathlib import Path

import h5py

# New forms of the file's own tables have checksums, as the data have: a flipped bit is an error, not another number.
LAYOUT_VERSION = ("v110", "v110")


@contextlib.contextmanager
def replacing(path: Path, *, keep: bool):
    """An open HDF5 file that takes the place of ``path`` in one move when the block ends well.

    It starts empty, or with ``keep`` as a copy of ``path``. Raises `OSError` where it cannot be written; ``path`` is
    then as it was.
    """
    scratch = path.with_name(f".{path.name}.tmp")
    try:
        if keep:
            shutil.copyfile(path, scratch)
        with scratch.open("r+b" if keep else "w+b", buffering=0) as raw:
            under = _Patient(raw.fileno())
            with h5py.File(under, "r+" if keep else "w", libver=LAYOUT_VERSION) as file:
                yield file
            under.finish()
        os.replace(scratch, path)
    finally:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)


class _Patient:
    """A file as h5py wants it, in which no write fails: see the top. ``later`` are the pieces that found no room."""

    def __init__(self, descriptor: int):
        self.descriptor, self.place, self.error, self.later = descriptor, 0, None, []

    def seek(self, offset, whence=os.SEEK_SET):
        self.place = offset + (self.size() if whence == os.SEEK_END else 0)
        return self.place

    def tell(self):
        return self.place

    def size(self) -> int:
        ends = [offset + len(piece) for offset, piece in self.later]
        return max(os.fstat(self.descriptor).st_size, *ends) if ends else os.fstat(self.descriptor).st_size

    def write(self, data):
        data, begin = bytes(data), self.place
        try:
            while self.error is None and self.place < begin + len(data):
                self.place += os.pwrite(self.descriptor, data[self.place - begin :], self.place)
        except OSError as error:
            self.error = error
        if self.error is not None:
            self.later.append((begin, data))
        self.place = begin + len(data)
        return len(data)

    def read(self, count):
        out = bytearray(count)
        return bytes(out[: self.readinto(out)])

    def readinto(self, out):
        view = memoryview(out).cast("B")
        view[:] = bytes(len(view))
        count, end = os.preadv(self.descriptor, [view], self.place), self.place + len(view)
        for offset, piece in self.later:
            first, last = max(offset, self.place), min(offset + len(piece), end)
            if first < last:
                view[first - self.place : last - self.place] = piece[first - offset : last - offset]
                count = max(count, last - self.place)
        self.place += count
        return count

    def truncate(self, size):
        if self.error is None:
            try:
                os.ftruncate(self.descriptor, size)
            except OSError as error:
                self.error = error
        return size

    def flush(self):
        pass

    def finish(self) -> None:
        """Raise the first error, if there was one; else see that all is on the disk."""
        if self.error is None:
            os.fsync(self.descriptor)
        else:
            raise self.error
