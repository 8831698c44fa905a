"""The tools as a model is told of them."""

from verilog_taskapp.environment.actions import TOOL_NAMES, TOOLS


def test_there_are_four_tools() -> None:
    assert TOOL_NAMES == ("write_file", "compile", "simulate", "submit")
    assert tuple(tool.name for tool in TOOLS) == TOOL_NAMES


def test_every_tool_is_a_function_with_a_closed_schema() -> None:
    for tool in TOOLS:
        entry = tool.to_openai()
        assert entry["type"] == "function"
        function = entry["function"]
        assert function["name"] == tool.name
        assert function["description"]
        schema = function["parameters"]
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert set(schema["required"]) <= set(schema["properties"])


def test_arguments_are_those_of_the_contract() -> None:
    arguments = {tool.name: (set(tool.parameters["properties"]), tool.parameters["required"]) for tool in TOOLS}
    assert arguments == {
        "write_file": ({"path", "content"}, ["path", "content"]),
        "compile": ({"sources"}, []),
        "simulate": (set(), []),
        "submit": (set(), []),
    }
