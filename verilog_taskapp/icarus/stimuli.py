"""Which secret stimulus a submission is judged on.

A stimulus is named by its number of draws: how many values of the bench's random streams are drawn ahead of it; 0 is
the public one. The numbers come from a key that only this installation has, so that a design cannot hold the answers
in advance. The same design always meets the same stimulus: repeating a submission does not repeat the chance.
"""

import contextlib
import hashlib
import hmac
import logging
import os
import secrets
from pathlib import Path

PUBLIC = 0
"""The bench's own stimulus."""
KEY_BYTES = 32
MIN_DRAWS, MAX_DRAWS = 64, 16384
DEFAULT_POOL = 4
"""Secret stimuli per problem; each is recorded once and kept."""

log = logging.getLogger(__name__)


class SecretPool:
    """The secret stimuli of every problem; `size` of them each."""

    def __init__(self, key: bytes, size: int = DEFAULT_POOL) -> None:
        self._key = key
        self.size = size

    @classmethod
    def load(cls, folder: Path | None, size: int = DEFAULT_POOL, *, passphrase: str | None = None) -> "SecretPool":
        """The pool of the key kept in `folder`, which is made on first use. Blocking.

        Without a folder, or with one that cannot be written, the key is this process's own. A `passphrase` wins: all
        installations that are given the same one judge a design on the same stimulus.
        """
        if passphrase is not None:
            return cls(hashlib.sha256(passphrase.encode()).digest(), size)
        return cls(_kept_key(folder) if folder is not None else secrets.token_bytes(KEY_BYTES), size)

    def draws(self, bench_key: str, index: int) -> int:
        """Stimulus number `index` (0 to `size` - 1) of a bench."""
        return MIN_DRAWS + self._number(f"stimulus {bench_key} {index}") % (MAX_DRAWS - MIN_DRAWS)

    def chosen(self, bench_key: str, design: str) -> int:
        """The stimulus that a design, told by its fingerprint, is judged on."""
        return self.draws(bench_key, self._number(f"choice {bench_key} {design}") % self.size)

    def _number(self, text: str) -> int:
        return int.from_bytes(hmac.new(self._key, text.encode(), hashlib.sha256).digest()[:8], "big")


def _kept_key(folder: Path) -> bytes:
    """Read the key, or make it so that processes that start together agree on one."""
    path = folder / "stimulus-key"
    temporary = folder / f"stimulus-key.{os.getpid()}.{secrets.token_hex(4)}"
    fresh = secrets.token_bytes(KEY_BYTES)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(fresh)
            with contextlib.suppress(FileExistsError):  # another process was first: its key is read below
                os.link(temporary, path)
            temporary.unlink()
        kept = path.read_bytes()
    except OSError as error:
        log.warning("the key of the secret stimuli cannot be kept: %s", error.strerror)
        return fresh
    return kept if len(kept) == KEY_BYTES else fresh
