"""Which medium a disk is, from measurements: the rules applied and put into sentences."""

import msgspec

from disksla.benchmark.identify_evidence import Evidence
from disksla.benchmark.identify_rules import RULES, TITLES, Medium, signs_of
from disksla.benchmark.identify_text import Claim, contradictions, observations

FEWEST_REQUESTS = 30
"""Fewer do not show a distribution."""
_NOTHING_RANDOM = (
    "Reading on tells nothing of the kind: behind the limits of a cloud platters and chips both do"
    " 100 to 200 MB/s. What tells them apart is the time to get to a random place, and that was"
    " not measured."
)


class Finding(msgspec.Struct, frozen=True):
    """What a disk really is, and why that is thought."""

    medium: Medium
    limited: bool
    """Whether some of the numbers are those of a limiter, and not of the medium."""
    conclusion: str
    observations: tuple[str, ...] = ()
    """What was seen, in sentences."""
    contradictions: tuple[str, ...] = ()
    """What the disk claims and the measurements deny, in sentences."""

    @property
    def title(self) -> str:
        """Name the medium for people."""
        return TITLES[self.medium]


def identify(evidence: Evidence, claim: Claim | None = None) -> Finding:
    """Say what the medium is, or that the evidence does not tell."""
    random = evidence.random
    if random is None:
        return Finding("unknown", False, _NOTHING_RANDOM)  # noqa: FBT003 -- as the record has it
    if random.requests is not None and random.requests < FEWEST_REQUESTS:
        few = f"Only {random.requests} random reads were answered; {FEWEST_REQUESTS} are needed."
        return Finding("unknown", False, few)  # noqa: FBT003
    signs = signs_of(evidence, random)
    rule = next(rule for rule in RULES if rule.holds(signs))
    medium = rule.medium
    if medium == "rotating" and (signs.reads_ahead or signs.hit_share):
        medium = "rotating_with_cache"
    return Finding(
        medium,
        signs.limited,
        rule.conclusion,
        tuple(observations(evidence, random, signs)),
        tuple(contradictions(medium, claim)) if claim else (),
    )
