"""What would have been enough: which limits a recorded load needs.

- `demand`: what the load asked for, from the windows of a recording.
- `scrapes`: the same, from the counters that Prometheus has.
- `simulation`: the share of the time in which other limits would have throttled it, as a range.
- `search`: the least of what a provider sells that would have been enough.
- `closed_loop`: what higher limits would serve of a load that waits, and how long it would wait.
- `prices`: what a disk costs, by a list of the operator.
- `published`: what was chosen when the disk was bought, from its published limits.
- `advice`: all of this of one disk and its machine, and what to buy next.
- `advice_text`, `advice_document`: text and JSON of it.
"""

from disksla.measure.advice.demand import Served, demand_of, served_of, total_served
from disksla.measure.advice.scrapes import demand_of_means, demand_of_scrapes, provision_by_limits
from disksla.measure.advice.search import Candidate, Needs
