"""What would have been enough: which limits a recorded load needs.

- `demand`: what the load asked for, from the windows of a recording.
- `scrapes`: the same, from the counters that Prometheus has; what was chosen when a disk was
  bought, from its published limits.
- `simulation`: the share of the time in which other limits would have throttled it, as a range.
- `search`: the least of what a provider sells that would have been enough; what it costs, by a
  list of the operator.
- `closed_loop`: what higher limits would serve of a load that waits, and how long it would wait.
- `advice`: all of this of one disk and its machine, and what to buy next; JSON of it.
- `advice_text`: the page.
"""

from disksla.measure.advice.demand import Served, demand_of, served_of, total_served
from disksla.measure.advice.scrapes import demand_of_means, demand_of_scrapes, provision_by_limits
from disksla.measure.advice.search import Candidate, Needs
