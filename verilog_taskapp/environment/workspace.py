"""The files of one episode and the rules for writing them.

A workspace is held in memory and belongs to one episode: there is no directory that another episode, or a symbolic
link, could reach. Each job gets its own fresh directory with a copy, and that is gone when the job ends.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from verilog_taskapp.environment.normalize import normalize

SUFFIXES = (".v", ".sv", ".vh", ".svh", ".txt", ".md", ".mem", ".hex", ".dat")
SOURCE_SUFFIXES = (".v", ".sv")
MAX_FILES = 64
MAX_FILE_BYTES = 256 * 1024
MAX_TOTAL_BYTES = 1024**2
NORMALIZED_FACTOR = 4
"""Text longer than this many times the limit is not even looked at: normalising may shorten it, but not to fit."""
MAX_PATH_CHARS = 128
MAX_DEPTH = 4
MAX_NAMES_TOLD = 8
"""File names that one refusal repeats."""

_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


class Refused(Exception):
    """The call is wrong in itself; the message says how to do it right."""


def clean_path(path: object) -> str:
    """A path as it is kept, without a leading ``./``. Raises `Refused` for anything outside the rules."""
    if not isinstance(path, str):
        raise Refused(f"path must be a string, not {type(path).__name__}")
    name = path.strip().removeprefix("./")
    if not name:
        raise Refused("path is empty: give a file name such as TopModule.v")
    if name.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z]:", name):
        raise Refused("path must be relative to the workspace")
    segments = name.split("/")
    if ".." in segments:
        raise Refused("path must stay inside the workspace: '..' is not allowed")
    if len(name) > MAX_PATH_CHARS or len(segments) > MAX_DEPTH:
        raise Refused(f"path is too long: at most {MAX_PATH_CHARS} characters and {MAX_DEPTH} levels")
    if not all(_SEGMENT.fullmatch(segment) for segment in segments):
        raise Refused("path may hold letters, digits and _ . + - only, and no part may start with . + or -")
    if not name.endswith(SUFFIXES):
        raise Refused(f"the file's suffix must be one of {' '.join(SUFFIXES)}")
    return name


class Workspace:
    """Files by path, within the limits."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = dict(files)

    @property
    def files(self) -> Mapping[str, str]:
        """A read-only view."""
        return MappingProxyType(self._files)

    @property
    def sources(self) -> tuple[str, ...]:
        """What is compiled by default: every Verilog source, sorted."""
        return tuple(sorted(name for name in self._files if name.endswith(SOURCE_SUFFIXES)))

    def write(self, path: object, content: object) -> tuple[str, tuple[str, ...]]:
        """Replace or create a file. Returns its path and notes on what was normalised.

        Raises `Refused`, and then nothing has changed.
        """
        name = clean_path(path)
        if not isinstance(content, str):
            raise Refused(f"content must be a string, not {type(content).__name__}")
        if len(content) > NORMALIZED_FACTOR * MAX_FILE_BYTES:
            raise Refused(f"content has {len(content)} characters; at most {MAX_FILE_BYTES} bytes are allowed")
        text, notes = normalize(name, content)
        text = text.encode("utf-8", "replace").decode()
        if "\0" in text:
            raise Refused("content holds a NUL character")
        size = len(text.encode())
        if size > MAX_FILE_BYTES:
            raise Refused(f"content has {size} bytes; at most {MAX_FILE_BYTES} are allowed")
        if name not in self._files and len(self._files) >= MAX_FILES:
            raise Refused(f"the workspace already has {MAX_FILES} files, the most that it may have")
        others = sum(len(kept.encode()) for other, kept in self._files.items() if other != name)
        if others + size > MAX_TOTAL_BYTES:
            raise Refused(f"the workspace would hold {others + size} bytes; at most {MAX_TOTAL_BYTES} are allowed")
        if any(other.startswith(f"{name}/") or name.startswith(f"{other}/") for other in self._files):
            raise Refused("a file and a folder cannot have the same name")
        self._files[name] = text
        return name, notes

    def select(self, sources: object) -> tuple[str, ...]:
        """Check a list of sources to compile. Raises `Refused`."""
        if not isinstance(sources, list) or not all(isinstance(one, str) for one in sources):
            raise Refused("sources must be a list of file names")
        names = [clean_path(one) for one in sources]
        missing = [name for name in names if name not in self._files]
        if missing:
            raise Refused(f"no such file in the workspace: {_listed(missing)}")
        unusable = [name for name in names if not name.endswith(SOURCE_SUFFIXES)]
        if unusable:
            raise Refused(f"only {' and '.join(SOURCE_SUFFIXES)} files are compiled, not {_listed(unusable)}")
        return tuple(dict.fromkeys(names))

    def summary(self) -> str:
        """One line a file: its name and size."""
        return "\n".join(f"{name} ({len(text.encode())} bytes)" for name, text in sorted(self._files.items()))


def _listed(names: Iterable[str]) -> str:
    """The first few of them; a policy may name thousands."""
    different = list(dict.fromkeys(names))
    more = len(different) - MAX_NAMES_TOLD
    return ", ".join(different[:MAX_NAMES_TOLD]) + (f" and {more} more" if more > 0 else "")


def stub(top: str, prompt: str) -> str:
    """What ``TopModule.v`` holds at the start: the specification as a comment, and no module yet."""
    lines = "\n".join(f"// {line}".rstrip() for line in prompt.strip().splitlines())
    return f"// Implement module {top} in this file.\n//\n{lines}\n"
