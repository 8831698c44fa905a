"""All commands in one application."""

from typing import Annotated

import typer

from verilog_taskapp import __version__
from verilog_taskapp.cli import (
    check,
    compare,
    demo,
    doctor,
    evaluate,
    export,
    problems,
    regrade,
    rollout,
    serve,
    verify,
)

EXIT_CODES = (
    "Exit status: 0 it worked, 1 it ran and the answer is no, 2 wrong usage, "
    "3 no answer because of a fault that is not the caller's, 130 interrupted."
)

app = typer.Typer(
    name="verilog-taskapp",
    help="A spec-to-RTL reinforcement-learning environment on Icarus Verilog, as a web service.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"verilog-taskapp {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options that stand before the command."""


app.command("serve")(serve.serve)
app.command("demo")(demo.demo)
app.command("rollout")(rollout.rollout)
app.command("eval")(evaluate.evaluate)
app.command("regrade")(regrade.regrade)
app.command("compare")(compare.compare)
app.command("verify")(verify.verify)
app.command("export")(export.export)
app.command("check")(check.check)
app.command("doctor")(doctor.doctor)
app.add_typer(problems.app, name="problems")
