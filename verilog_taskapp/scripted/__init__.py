"""A chat-completions server that answers from scripts, for demonstrations, tests and load. It is not a model."""

from verilog_taskapp.scripted.app import ScriptedApp, Stats, scripted_app
from verilog_taskapp.scripted.episodes import EPISODE_NAMES, EPISODES, MODES, EpisodeName, Mode, mixed_is_correct
from verilog_taskapp.scripted.options import MODEL, ScriptedOptions
from verilog_taskapp.scripted.server import ScriptedServer

__all__ = [
    "EPISODES",
    "EPISODE_NAMES",
    "MODEL",
    "MODES",
    "EpisodeName",
    "Mode",
    "ScriptedApp",
    "ScriptedOptions",
    "ScriptedServer",
    "Stats",
    "mixed_is_correct",
    "scripted_app",
]
