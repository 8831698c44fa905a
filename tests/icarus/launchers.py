"""The two ways in which a launcher can start a child."""

from typing import Literal

import pytest

from verilog_taskapp.icarus import channel

Way = Literal["shared", "forked"]
WAYS: tuple[Way, ...] = ("shared", "forked")


def start_children(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the launchers that are started from now on start their children in this way."""
    if way == "forked":
        nowhere = "from verilog_taskapp.icarus import spawn; spawn.available = lambda: False; "
        monkeypatch.setattr(channel, "LAUNCHER", channel.LAUNCHER.replace("from verilog", f"{nowhere}from verilog", 1))
        assert nowhere in channel.LAUNCHER
