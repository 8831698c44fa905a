"""Directories of living processes stay, those of dead ones go."""

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from verilog_taskapp.icarus.scratch import LOCK_NAME, NEW, NEW_S, Scratch, default_root, sweep


def base_of(root: Path) -> Path:
    return root / f"verilog-taskapp-{os.getuid()}"


def dead(base: Path, name: str) -> Path:
    """A directory whose owner is gone."""
    path = base / name
    (path / "job-1" / "sub").mkdir(parents=True)
    (path / "job-1" / "TopModule.v").write_text("left")
    (path / LOCK_NAME).touch()
    return path


def aged(path: Path) -> Path:
    old = path.stat().st_mtime - NEW_S - 1
    os.utime(path, (old, old))
    return path


def test_a_scratch_directory_is_private_and_goes_when_closed(tmp_path: Path) -> None:
    scratch = Scratch.open(tmp_path / "deep" / "root")
    assert scratch.path.parent == base_of(tmp_path / "deep" / "root")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (scratch.path, scratch.path.parent)] == [0o700, 0o700]
    (scratch.path / "job").mkdir()
    scratch.close()
    assert list(scratch.path.parent.iterdir()) == []
    scratch.close()


def test_opening_sweeps_what_dead_processes_left_and_nothing_else(tmp_path: Path) -> None:
    alive = Scratch.open(tmp_path)
    base = base_of(tmp_path)
    gone = dead(base, "123-abc")
    (base / "a file").write_text("not ours to judge")
    (base / "link").symlink_to(tmp_path)
    second = Scratch.open(tmp_path)
    assert not gone.exists()
    assert {path.name for path in base.iterdir()} == {alive.path.name, second.path.name, "a file", "link"}
    alive.close()
    second.close()


def test_the_directory_of_another_living_process_stays(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from verilog_taskapp.icarus.scratch import Scratch\n"
    code += "s = Scratch.open(Path(sys.argv[1])); print(s.path, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        assert sweep(base_of(tmp_path)) == 0
        assert theirs.is_dir()
        other.kill()
        other.wait()
        assert sweep(base_of(tmp_path)) == 1
        assert not theirs.exists()


@pytest.mark.parametrize("name", ["123-abc", f"{NEW}123-abc"])
def test_a_directory_without_a_lock_goes_only_when_it_is_old(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.mkdir()
    assert sweep(tmp_path) == 0
    aged(path)
    assert sweep(tmp_path) == 1
    assert not path.exists()


def test_a_directory_that_is_just_being_made_stays(tmp_path: Path) -> None:
    path = tmp_path / f"{NEW}123-abc"
    path.mkdir()
    (path / LOCK_NAME).touch()  # not locked yet: another process is between the two calls
    assert sweep(tmp_path) == 0
    aged(path)
    with (path / LOCK_NAME).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert sweep(tmp_path) == 0
    assert sweep(tmp_path) == 1


def test_many_processes_may_start_at_once(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from verilog_taskapp.icarus.scratch import Scratch\n"
    code += "for _ in range(40):\n s = Scratch.open(Path(sys.argv[1])); assert s.path.is_dir(); s.close()"
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(4)]
    assert [one.wait() for one in running] == [0, 0, 0, 0]
    assert list(base_of(tmp_path).iterdir()) == []


def test_a_base_that_others_can_read_is_refused(tmp_path: Path) -> None:
    base_of(tmp_path).mkdir(mode=0o755)
    with pytest.raises(PermissionError, match="not a private directory"):
        Scratch.open(tmp_path)


def test_a_base_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    base_of(tmp_path).symlink_to(tmp_path / "real")
    with pytest.raises(PermissionError):
        Scratch.open(tmp_path)


def test_a_root_that_is_a_file_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        Scratch.open(tmp_path / "file")


def test_the_default_root_exists() -> None:
    assert default_root().is_dir()
