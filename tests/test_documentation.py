"""The documentation lists what the code has: settings, routes, commands, error codes."""

import re
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from verilog_taskapp import errors
from verilog_taskapp.app import create_app
from verilog_taskapp.cli.root import app as commands
from verilog_taskapp.errors import TaskAppError
from verilog_taskapp.settings import Settings, documented_settings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_env_example_lists_every_setting_with_its_default() -> None:
    lines = re.findall(r"^#([A-Z][A-Z0-9_]*)=(.*)$", (ROOT / ".env.example").read_text("utf-8"), re.M)
    assert lines == [(setting.variable, setting.default) for setting in documented_settings()]


def test_the_readme_s_table_lists_every_setting_as_the_code_describes_it() -> None:
    rows = re.findall(r"^\| `([A-Z][A-Z0-9_]*)` \| (?:`([^`]*)`)? ?\| (.*) \|$", README, re.M)
    assert rows == [(setting.variable, setting.default, setting.description) for setting in documented_settings()]


def test_every_setting_says_what_it_is_for() -> None:
    assert all(setting.description for setting in documented_settings())


def test_the_readme_names_every_route() -> None:
    routes = {route.path for route in create_app(Settings(no_auth=True)).routes if isinstance(route, APIRoute)}
    unmentioned = {
        path
        for path in routes
        if path.rpartition("/")[2] and not re.search(rf"{path}\b|`/{path.rpartition('/')[2]}`", README)
    }
    assert unmentioned <= {"/done", "/debug/env"}


def test_the_readme_names_every_command() -> None:
    names = [
        command.name or (command.callback.__name__ if command.callback else "")
        for command in commands.registered_commands
    ]
    names += [group.name or "" for group in commands.registered_groups]
    assert len(names) >= 7
    assert not [name for name in names if f"verilog-taskapp {name}" not in README]


def fault_classes(of: type[TaskAppError] = TaskAppError) -> list[type[TaskAppError]]:
    return [of, *(deeper for below in of.__subclasses__() for deeper in fault_classes(below))]


@pytest.mark.parametrize("fault", [one for one in fault_classes() if one.__module__ == errors.__name__])
def test_the_tree_of_errors_is_drawn_whole(fault: type[TaskAppError]) -> None:
    assert errors.__doc__ is not None
    assert fault.__name__ in errors.__doc__
