"""The four tools: their names, their arguments and their JSON schemas."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

ToolName = Literal["write_file", "compile", "simulate", "submit"]
TOOL_NAMES: tuple[ToolName, ...] = get_args(ToolName)


@dataclass(frozen=True)
class ToolCall:
    """One action of the policy; ``arguments`` are as sent, not yet checked."""

    tool: ToolName
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class ToolSpec:
    """What a model is told about a tool; ``parameters`` is a JSON schema of an object."""

    name: ToolName
    description: str
    parameters: Mapping[str, Any]

    def to_openai(self) -> dict[str, Any]:
        """The tool as an entry of a chat-completions request's ``tools``."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


def _schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec(
        "write_file",
        "Write a whole file into the workspace, replacing it if it exists.",
        _schema(
            {
                "path": {"type": "string", "description": "Relative file name, e.g. TopModule.v"},
                "content": {"type": "string", "description": "The complete text of the file"},
            },
            ["path", "content"],
        ),
    ),
    ToolSpec(
        "compile",
        "Compile the workspace's Verilog files together with the hidden testbench and report errors and warnings.",
        _schema(
            {
                "sources": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Files to compile; by default every .v and .sv file",
                }
            },
            [],
        ),
    ),
    ToolSpec(
        "simulate",
        "Run the public check of the testbench on the compiled design and report which outputs mismatch.",
        _schema({}, []),
    ),
    ToolSpec(
        "submit",
        "Hand in the workspace as it is now for the final verdict. This ends the episode.",
        _schema({}, []),
    ),
)
