"""Where the reward is computed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Bonus = Literal["compile_success", "simulate_pass", "submit_pass"]


@dataclass(frozen=True)
class Rewards:
    """What an episode pays, in reward units."""

    compile_success: float = 0.1
    simulate_pass: float = 1.0
    submit_pass: float = 10.0
    step_penalty: float = -0.01
    partial: float = 0.0
    """Times the share of outputs that never mismatched, on a failing submission."""


@dataclass(frozen=True)
class Booked:
    """What a ledger holds."""

    paid: tuple[Bonus, ...] = ()
    """Bonuses that will not be paid again."""
    total: float = 0.0
    last: float = 0.0


class Ledger:
    """The rewards of one episode: every bonus is paid once, every step costs the penalty."""

    def __init__(self, rewards: Rewards, booked: Booked | None = None) -> None:
        before = booked or Booked()
        self._rewards = rewards
        self._paid = set(before.paid)
        self.total = before.total
        self.last = before.last

    @property
    def booked(self) -> Booked:
        """All that was booked so far; a ledger made with it goes on from there."""
        return Booked(tuple(sorted(self._paid)), self.total, self.last)

    def step(self, bonus: Bonus | None = None, *, partial_share: float = 0.0) -> Mapping[str, float]:
        """Book one step; returns its components, the non-zero ones and always the penalty."""
        components = {"step_penalty": self._rewards.step_penalty}
        if bonus is not None and bonus not in self._paid:
            self._paid.add(bonus)
            components[bonus] = float(getattr(self._rewards, bonus))
        if partial_share and self._rewards.partial:
            components["partial"] = self._rewards.partial * partial_share
        self.last = sum(components.values())
        self.total += self.last
        return components
