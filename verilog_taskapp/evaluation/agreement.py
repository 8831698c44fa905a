"""How the golden and the classic judge agree on the same designs."""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from verilog_taskapp.evaluation.samples import Sample


class Disagreement(BaseModel):
    """One design that the judges see differently."""

    model_config = ConfigDict(frozen=True)

    problem: str
    sample: int
    golden: bool
    golden_reason: str
    classic: bool
    classic_category: str
    classic_reason: str


class Agreement(BaseModel):
    """Designs by what the two judges say of them."""

    model_config = ConfigDict(frozen=True)

    both_pass: int
    both_fail: int
    only_golden: int
    only_classic: int
    unjudged: int
    """Designs that one of them could not judge, and samples without a design."""
    disagreements: tuple[Disagreement, ...]

    @property
    def compared(self) -> int:
        """Designs that both judged."""
        return self.both_pass + self.both_fail + self.only_golden + self.only_classic


def agreement(samples: Iterable[Sample]) -> Agreement:
    """Compare the judgements of each sample."""
    counts = {(True, True): 0, (False, False): 0, (True, False): 0, (False, True): 0}
    unjudged = 0
    different: list[Disagreement] = []
    for one in samples:
        golden, classic = one.judgements.get("golden"), one.judgements.get("classic")
        if golden is None or classic is None or golden.passed is None or classic.passed is None:
            unjudged += 1
            continue
        counts[golden.passed, classic.passed] += 1
        if golden.passed != classic.passed:
            different.append(
                Disagreement(
                    problem=one.problem,
                    sample=one.sample,
                    golden=golden.passed,
                    golden_reason=golden.reason,
                    classic=classic.passed,
                    classic_category=classic.category,
                    classic_reason=classic.reason,
                )
            )
    return Agreement(
        both_pass=counts[True, True],
        both_fail=counts[False, False],
        only_golden=counts[True, False],
        only_classic=counts[False, True],
        unjudged=unjudged,
        disagreements=tuple(different),
    )
