"""Every bonus once, every step its price."""

import pytest

from verilog_taskapp.environment.rewards import Bonus, Ledger, Rewards


def test_a_step_costs_the_penalty() -> None:
    ledger = Ledger(Rewards())
    assert ledger.step() == {"step_penalty": -0.01}
    assert (ledger.last, ledger.total) == (-0.01, -0.01)


@pytest.mark.parametrize(("bonus", "value"), [("compile_success", 0.1), ("simulate_pass", 1.0), ("submit_pass", 10.0)])
def test_a_bonus_is_paid_once(bonus: Bonus, value: float) -> None:
    ledger = Ledger(Rewards())
    assert ledger.step(bonus) == {"step_penalty": -0.01, bonus: value}
    assert ledger.last == pytest.approx(value - 0.01)
    assert ledger.step(bonus) == {"step_penalty": -0.01}
    assert ledger.total == pytest.approx(value - 0.02)


def test_the_return_is_the_sum_of_the_steps() -> None:
    ledger = Ledger(Rewards(0.5, 2.0, 3.0, -0.1))
    lasts = []
    for bonus in ("compile_success", None, "simulate_pass", "submit_pass"):
        ledger.step(bonus)
        lasts.append(ledger.last)
    assert lasts == pytest.approx([0.4, -0.1, 1.9, 2.9])
    assert ledger.total == pytest.approx(5.1)


def test_partial_credit_is_a_share_and_nothing_by_default() -> None:
    assert Ledger(Rewards()).step(partial_share=0.5) == {"step_penalty": -0.01}
    assert Ledger(Rewards(partial=4.0)).step(partial_share=0.5) == {"step_penalty": -0.01, "partial": 2.0}
    assert Ledger(Rewards(partial=4.0)).step(partial_share=0.0) == {"step_penalty": -0.01}


def test_a_step_may_be_free() -> None:
    ledger = Ledger(Rewards(step_penalty=0.0))
    assert ledger.step() == {"step_penalty": 0.0}
    assert ledger.total == 0.0
