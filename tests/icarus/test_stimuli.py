"""The key of the secret stimuli: kept, shared, private, and never a reason to fail."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from verilog_taskapp.icarus.stimuli import MAX_DRAWS, MIN_DRAWS, SecretPool


def draws(pool: SecretPool) -> list[int]:
    return [pool.draws("bench", index) for index in range(pool.size)]


def test_the_key_is_kept_and_private(tmp_path: Path) -> None:
    first = SecretPool.load(tmp_path / "cache")
    assert draws(first) == draws(SecretPool.load(tmp_path / "cache"))
    key = tmp_path / "cache" / "stimulus-key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert [path.name for path in key.parent.iterdir()] == ["stimulus-key"]


def test_installations_differ(tmp_path: Path) -> None:
    assert draws(SecretPool.load(tmp_path / "one")) != draws(SecretPool.load(tmp_path / "other"))
    assert draws(SecretPool.load(None)) != draws(SecretPool.load(None))


def test_processes_that_start_together_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as threads:
        pools = list(threads.map(lambda _: SecretPool.load(tmp_path), range(64)))
    assert len({tuple(draws(pool)) for pool in pools}) == 1


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_damaged_key_is_not_used(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "stimulus-key").write_bytes(content)
    assert all(MIN_DRAWS <= number < MAX_DRAWS for number in draws(SecretPool.load(tmp_path)))


def test_a_folder_that_cannot_be_written_costs_only_the_sharing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert len(draws(SecretPool.load(tmp_path / "file" / "below"))) == 4


def test_installations_with_the_same_passphrase_agree_without_a_common_folder(tmp_path: Path) -> None:
    one = SecretPool.load(tmp_path / "one", passphrase="correct horse battery")
    other = SecretPool.load(None, passphrase="correct horse battery")
    assert draws(one) == draws(other)
    assert draws(one) != draws(SecretPool.load(None, passphrase="correct horse batterx"))
    assert not (tmp_path / "one").exists(), "nothing is written"
