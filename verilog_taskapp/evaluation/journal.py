"""``results.jsonl``: one line per finished sample, on the disk before it counts."""

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from verilog_taskapp.evaluation.samples import Key, Sample

RESULTS_FILE = "results.jsonl"


class JournalFault(ValueError):
    """The file is not what an evaluation wrote, or another evaluation is writing it."""


def read_samples(path: Path) -> tuple[list[Sample], int]:
    """The samples of a file and the number of bytes that hold them: less than its size if its last line is torn.

    A line is torn when the process was killed while writing it. A later line of the same sample replaces an earlier
    one, unless that would replace a result by an error. Raises `JournalFault` for anything else that does not fit.
    """
    found: dict[Key, Sample] = {}
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    for number, line in enumerate(data[:whole].splitlines(), start=1):
        try:
            sample = Sample.model_validate_json(line)
        except ValidationError as error:
            raise JournalFault(f"{path}: line {number} is not a sample: {error.errors()[0]['msg']}") from None
        if sample.status != "error" or sample.key not in found:
            found[sample.key] = sample
    return list(found.values()), whole


class Journal:
    """``with Journal(path) as journal``: holds the file, and a lock on it, until the block ends.

    `finished` are the samples that were there. Raises `JournalFault` and OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self.finished: list[Sample] = []
        self.dropped_bytes = 0
        """Size of the torn line that was cut off."""

    def __enter__(self) -> Self:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.finished, whole = read_samples(self._path)
            self.dropped_bytes = os.fstat(self._file).st_size - whole
            if self.dropped_bytes:
                os.ftruncate(self._file, whole)
            os.fsync(self._file)
            _sync_folder(self._path.parent)
        except BlockingIOError:
            self._close()
            raise JournalFault(f"another evaluation is writing {self._path}") from None
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def append(self, sample: Sample) -> None:
        """Write one line; it is on the disk when this returns. Blocking; one caller at a time. Raises OSError."""
        start = os.fstat(self._file).st_size
        line = sample.model_dump_json(exclude_defaults=True).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, start)  # a full disk must not leave half a line in front of the next one
            raise

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _sync_folder(folder: Path) -> None:
    """A new file is only there for good once its folder is on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` as a whole: a reader, or a crash, finds the old text or the new one. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def write_samples(path: Path, samples: Iterable[Sample]) -> None:
    """A whole file of samples at once."""
    write_atomically(path, "".join(f"{one.model_dump_json(exclude_defaults=True)}\n" for one in samples))
