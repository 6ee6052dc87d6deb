"""What would have been enough: which limits a recorded load needs.

- `demand`: what the load asked for, from the windows of a recording.
- `scrapes`: the same, from the counters that Prometheus has.
- `simulation`: the share of the time in which other limits would have throttled it, as a range.
- `search`: the least of what a provider sells that would have been enough.
- `published`: what was chosen when the disk was bought, from its published limits.
- `machines`: the same of the machine types of a family.
"""

from disksla.advice.demand import LIMITED_VERDICTS, Served, demand_of, served_of, together
from disksla.advice.machines import MachineOutcome, machine_outcomes
from disksla.advice.published import provision_by_limits
from disksla.advice.scrapes import Scrape, demand_of_scrapes
from disksla.advice.search import (
    Answer,
    Candidate,
    Needs,
    Outcome,
    least_of,
    outcome_of,
    outcomes_of_type,
)
from disksla.advice.simulation import ShareRange

__all__ = [
    "LIMITED_VERDICTS",
    "Answer",
    "Candidate",
    "MachineOutcome",
    "Needs",
    "Outcome",
    "Scrape",
    "Served",
    "ShareRange",
    "demand_of",
    "demand_of_scrapes",
    "least_of",
    "machine_outcomes",
    "outcome_of",
    "outcomes_of_type",
    "provision_by_limits",
    "served_of",
    "together",
]
