"""From the settings to a `ProblemSet`: one way in for every source."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from verilog_taskapp.errors import DatasetUnavailable
from verilog_taskapp.problems.bundled import read_bundled
from verilog_taskapp.problems.corrections import with_corrections
from verilog_taskapp.problems.folder import read_folder
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.problems.problem_set import ProblemSet, SkippedRow
from verilog_taskapp.problems.row import BadRow, Row, problem_from_row, row_id
from verilog_taskapp.problems.rows import read_rows
from verilog_taskapp.problems.spec import BundledSource, FolderSource, SourceSpec, parse_source
from verilog_taskapp.settings import Settings

REASONS_SHOWN = 3

PlacedRow = tuple[str, Row | BadRow]


def load_problem_set(settings: Settings) -> ProblemSet:
    """The problems of ``settings.dataset``, at most ``settings.max_instances`` of them.

    Blocks on files and, for a hub set, the network: call it in a thread. A bad row is skipped, with its reason in
    the result. Raises DatasetUnavailable if the source cannot be read or no row is usable.
    """
    source = parse_source(settings.dataset)
    collected = _Collected(source.label)
    problems = tuple(islice(collected.problems(_read(source, settings)), settings.max_instances))
    if not problems:
        raise DatasetUnavailable(f"{source.label}: {_why_empty(collected.skipped)}")
    if settings.errata:
        problems = with_corrections(problems)
    return ProblemSet(source.id, source.name, source.label, problems, tuple(collected.skipped))


def _read(source: SourceSpec, settings: Settings) -> Iterable[PlacedRow]:
    match source:
        case BundledSource():
            return read_bundled()
        case FolderSource(path=path):
            try:
                return list(read_folder(path))
            except OSError as error:
                raise DatasetUnavailable(f"{source.label}: {error.strerror or 'cannot be listed'}") from error
    return read_rows(source, settings.dataset_columns)


@dataclass
class _Collected:
    """Turns rows into problems of distinct ids and remembers what it skipped."""

    source: str
    skipped: list[SkippedRow] = field(default_factory=list)

    def problems(self, rows: Iterable[PlacedRow]) -> Iterator[Problem]:
        seen: set[str] = set()
        for place, row in rows:
            name = place if place.isprintable() else repr(place)
            try:
                if isinstance(row, BadRow):
                    raise row
                name = row_id(row)
                problem = problem_from_row(row, self.source)
                if problem.id in seen:
                    raise BadRow("problem_id: an earlier row has it too")
            except BadRow as error:
                self.skipped.append(SkippedRow(name, str(error)))
            else:
                seen.add(problem.id)
                yield problem


def _why_empty(skipped: list[SkippedRow]) -> str:
    if not skipped:
        return "no problems in it"
    reasons = Counter(row.reason for row in skipped).most_common()
    shown = "; ".join(f"{reason} ({count}x)" for reason, count in reasons[:REASONS_SHOWN])
    more = f"; and {len(reasons) - REASONS_SHOWN} other reasons" if len(reasons) > REASONS_SHOWN else ""
    return f"none of its {len(skipped)} rows is usable: {shown}{more}"
