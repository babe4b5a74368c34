"""What an experiment found: texts, tables and plots in order, and claims that hold or do not."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns, as a person reads them: numbers already with their units."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Bars:
    """One number for each label and each series; `unit` is that of the numbers."""

    title: str
    labels: list[str]
    series: dict[str, list[float]]
    unit: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that was measured, and whether it held."""

    text: str
    holds: bool


@dataclass
class Finding:
    """Filled by an experiment, from top to bottom.

    Attributes:
        figures: the measured numbers by name, with the unit in the name; for `--json` and tests.
    """

    title: str
    parts: list[str | Table | Bars] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)

    def say(self, text: str) -> None:
        self.parts.append(text)

    def show(self, part: Table | Bars) -> None:
        self.parts.append(part)

    def claim(self, text: str, holds: bool) -> None:
        self.claims.append(Claim(text, bool(holds)))

    @property
    def holds(self) -> bool:
        return all(claim.holds for claim in self.claims)
