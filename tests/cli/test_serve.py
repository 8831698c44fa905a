"""``serve``: real processes on real ports."""

import signal
import socket
import time
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import Cli, Start, Started
from tests.conftest import left_in
from tests.support import DEADLINE_S
from verilog_taskapp.cli.serve import listen, url_of

KEY = {"X-API-Key": "k-0123456789"}


def url_from(server: Started) -> str:
    """Where the service listens, once it is ready."""
    url = server.line("starting on").split()[-1]
    with httpx.Client(trust_env=False) as client:
        for _ in range(int(DEADLINE_S * 50)):
            try:
                if client.get(f"{url}/ready").status_code == 200:
                    return url
            except httpx.ConnectError:
                assert server.process.poll() is None, server.end()
            time.sleep(0.02)
    raise AssertionError(f"{url} is not ready")


def get(url: str, headers: dict[str, str] | None = None) -> httpx.Response:
    return httpx.get(url, headers=headers, trust_env=False)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_settings_reach_every_worker(start: Start, source: str, tmp_path: Path, workers: str) -> None:
    (tmp_path / "prod.env").write_text(f"ENVIRONMENT_API_KEY={KEY['X-API-Key']}\nVERILOG_DATASET=bundled\n")
    Path(".env").write_text("ENVIRONMENT_API_KEY=another\n")
    server = start(
        *("serve", "--port", "0", "--workers", workers, "--env-file", str(tmp_path / "prod.env")),
        *("--dataset", source, "--log-level", "error"),
    )
    url = url_from(server)
    for _ in range(4):
        assert get(f"{url}/task_info").status_code == 401
        assert get(f"{url}/task_info", {"X-API-Key": "another"}).status_code == 401
        answer = get(f"{url}/task_info", KEY)
        assert answer.json()["dataset"]["instance_ids"] == ["broken", "closed_loop", "counter", "gates"]
    outcome = server.stop(signal.SIGINT)
    assert outcome.status == 130
    assert KEY["X-API-Key"] not in outcome.stderr
    assert left_in(tmp_path / "scratch") == []


def test_a_terminated_server_leaves_nothing(start: Start, tmp_path: Path) -> None:
    server = start("serve", "--port", "0", "--no-auth")
    url = url_from(server)
    assert get(f"{url}/task_info?seed=0").status_code == 200
    assert server.stop(signal.SIGTERM).status in (0, -signal.SIGTERM)
    assert left_in(tmp_path / "scratch") == []


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("VERILOG_IVERILOG", "/nowhere/iverilog", "install it"),
        ("VERILOG_DATASET", "dir:nowhere", "dir:nowhere: No such file"),
        ("VERILOG_EVENTS_RUBRIC", "nowhere.json", "nowhere.json"),
    ],
)
def test_a_start_that_fails_says_why_in_one_line(start: Start, variable: str, value: str, told: str) -> None:
    outcome = start("serve", "--port", "0", "--log-level", "warning", env={variable: value}).end()
    assert outcome.status == 1
    assert outcome.stdout == ""
    warning, starting, error = outcome.stderr.splitlines()
    assert "ENVIRONMENT_API_KEY is not set" in warning
    assert "starting on" in starting
    assert error.startswith("error: ")
    assert told in error


@pytest.mark.slow
def test_workers_that_cannot_start_end_the_server(start: Start) -> None:
    given = ("serve", "--port", "0", "--workers", "2", "--dataset", "dir:nowhere", "--log-level", "error")
    outcome = start(*given).end()
    assert outcome.status == 1
    assert "error: dir:nowhere: No such file or directory" in outcome.stderr
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])  # noqa: S104
def test_no_auth_is_for_loopback_only(cli: Cli, host: str) -> None:
    outcome = cli("serve", "--no-auth", "--host", host)
    assert outcome.status == 2
    assert outcome.stderr == f"error: --no-auth is only for a loopback address such as 127.0.0.1, not {host}\n"


def test_a_port_that_is_taken(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        outcome = start("serve", "--port", port).end()
    assert outcome.status == 1
    assert f"error: cannot listen on 127.0.0.1 port {port}: Address already in use" in outcome.stderr


@pytest.mark.parametrize(("host", "url"), [("127.0.0.1", "http://127.0.0.1:"), ("::1", "http://[::1]:")])
def test_the_address_that_is_told(host: str, url: str) -> None:
    if ":" in host and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with listen(host, 0) as listener:
        assert url_of(listener) == f"{url}{listener.getsockname()[1]}"


def test_a_wrong_setting_is_named(start: Start) -> None:
    outcome = start("serve", env={"VERILOG_DRAIN_S": "soon"}).end()
    assert outcome.status == 2
    assert outcome.stderr.startswith("error: wrong setting: VERILOG_DRAIN_S: ")
