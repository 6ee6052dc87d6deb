"""The medium of a disk: apply the rules to the evidence, and explain the result."""

import msgspec

from disksla.benchmark.identify_evidence import Evidence
from disksla.benchmark.identify_rules import RULES, TITLES, Medium, signs_of
from disksla.benchmark.identify_text import Claim, contradictions, observations

MIN_REQUESTS = 30
"""Minimum number of random reads that shows a distribution."""
_NOTHING_RANDOM = (
    "No random reads were measured. Sequential throughput does not distinguish media: behind the"
    " limits of a cloud, rotating disks and SSDs both do 100 to 200 MB/s."
)


class IdentifiedMedium(msgspec.Struct, frozen=True):
    """The medium of a disk, and the reasons."""

    medium: Medium
    limited: bool
    """Whether some of the numbers are those of a limiter, and not of the medium."""
    conclusion: str
    observations: tuple[str, ...] = ()
    """What was measured, in sentences."""
    contradictions: tuple[str, ...] = ()
    """Claims that the measurements contradict, in sentences."""

    @property
    def title(self) -> str:
        """Name of the medium."""
        return TITLES[self.medium]


def identify(evidence: Evidence, claim: Claim | None = None) -> IdentifiedMedium:
    """Return the medium, which is `unknown` if the evidence is not conclusive."""
    random = evidence.random
    if random is None:
        return IdentifiedMedium("unknown", False, _NOTHING_RANDOM)  # noqa: FBT003 -- order of the fields
    if random.requests is not None and random.requests < MIN_REQUESTS:
        few = f"Only {random.requests} random reads completed; {MIN_REQUESTS} are needed."
        return IdentifiedMedium("unknown", False, few)  # noqa: FBT003
    signs = signs_of(evidence, random)
    rule = next(rule for rule in RULES if rule.applies(signs))
    medium = rule.medium
    if medium == "rotating" and (signs.reads_ahead or signs.hit_share):
        medium = "rotating_with_cache"
    return IdentifiedMedium(
        medium,
        signs.limited,
        rule.conclusion,
        tuple(observations(evidence, random, signs)),
        tuple(contradictions(medium, claim)) if claim else (),
    )
