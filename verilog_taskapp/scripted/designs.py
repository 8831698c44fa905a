"""The designs that the scripts write, all made from a problem's reference."""

from dataclasses import dataclass

from verilog_taskapp.problems.model import Problem
from verilog_taskapp.scripted.verilog import (
    Module,
    Port,
    UnreadableModule,
    design_units,
    identifiers,
    read_module,
    rename_identifiers,
    unused_name,
)


@dataclass(frozen=True)
class Designs:
    """Four texts for the file `path`."""

    path: str
    right: str
    """The reference, renamed to the problem's top."""
    wrong: str
    """Compiles with the bench; every output is the complement of the reference's."""
    syntax_error: str
    """`right` without the semicolon that ends the header of the top."""
    missing_port: str
    """Elaborates alone, but the last output is an internal signal instead of a port."""


def designs_of(problem: Problem) -> Designs:
    """The four designs of a problem.

    When the port list of the reference is more than `read_module` reads, `wrong` and `missing_port` are a top without
    any port, which the bench does not accept, and `syntax_error` lacks its last ``endmodule``.
    """
    right = renamed_reference(problem)
    path = f"{problem.top}.v"
    try:
        module = read_module(right, problem.top)
    except UnreadableModule:
        empty = f"module {problem.top};\nendmodule\n"
        cut = right.rpartition("endmodule")[0]
        return Designs(path, right, empty, cut, empty)
    syntax_error = right[: module.semicolon] + right[module.semicolon + 1 :]
    return Designs(path, right, _complemented(problem, right, module), syntax_error, _lacking(problem, right, module))


def renamed_reference(problem: Problem) -> str:
    """The reference as a design: its top renamed, its other design units given names that the bench does not use.

    The bench is compiled together with the reference itself, so helper modules would otherwise exist twice.
    """
    text = problem.reference.strip() + "\n"
    taken = identifiers(text) | identifiers(problem.testbench) | {problem.top}
    names = {unit: unused_name(f"{unit}_dut", taken) for unit in design_units(text)}
    return rename_identifiers(text, {**names, problem.reference_top: problem.top})


def _complemented(problem: Problem, right: str, module: Module) -> str:
    outputs = [port for port in module.ports if port.direction == "output"]
    if not outputs:
        return f"module {problem.top};\nendmodule\n"
    return _wrapper(problem, right, module, module.ports, invert=True)


def _lacking(problem: Problem, right: str, module: Module) -> str:
    outputs = [port for port in module.ports if port.direction == "output"]
    if not outputs:
        return f"module {problem.top};\nendmodule\n"
    dropped = outputs[-1]
    kept = tuple(port for port in module.ports if port is not dropped)
    if not module.ansi:
        return _wrapper(problem, right, module, kept, invert=False)
    begin, end = module.ports_span
    header = ",".join(f"\n  {port.as_port()}" for port in kept)
    rest = f"{right[end : module.semicolon + 1]}\n\n  {dropped.as_variable()};{right[module.semicolon + 1 :]}"
    return f"{right[:begin]}{header}\n{rest}"


def _wrapper(problem: Problem, right: str, module: Module, ports: tuple[Port, ...], *, invert: bool) -> str:
    """A top with `ports` around the renamed reference; outputs inverted on request."""
    taken = identifiers(right) | identifiers(problem.testbench)
    core = unused_name(f"{problem.top}_core", taken)
    nets = {
        port.name: unused_name(f"{port.name}_core", taken) for port in ports if invert and port.direction == "output"
    }
    header = ",".join(f"\n  {port.direction} {port.as_net(port.name)}" for port in ports)
    lines = [
        " ".join(part for part in ("module", problem.top, module.imports, module.parameters, f"({header}\n);") if part),
        *(f"  {line.strip()}" for line in module.body_parameters.splitlines()),
        *(f"  {port.as_net(nets[port.name])};" for port in ports if port.name in nets),
        f"  {core} {_named(module.parameter_names, '#')}{unused_name('core', taken)} (",
        ",\n".join(f"    .{port.name}({nets.get(port.name, port.name)})" for port in ports),
        "  );",
        *(f"  assign {name} = ~{net};" for name, net in nets.items()),
        "endmodule",
    ]
    return rename_identifiers(right, {problem.top: core}) + "\n" + "\n".join(lines) + "\n"


def _named(names: tuple[str, ...], prefix: str) -> str:
    return f"{prefix}({', '.join(f'.{name}({name})' for name in names)}) " if names else ""
