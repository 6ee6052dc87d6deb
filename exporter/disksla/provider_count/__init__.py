"""What the provider counts of a disk, beside the verdicts of the same time.

- `provider_state`: sums over the readings of a statistics page (`disksla.ebs`).
- `provider_span`: what it says of the time between two readings.
- `agreement`: seconds by the limit of the verdict and by that of the provider.
- `comparison`: verdicts that wait for a reading, and get the name of the limit from it.
- `sentences`: what that means.
"""

from disksla.provider_count.agreement import NOT_THROTTLED, Agreement, named_limit, with_limit
from disksla.provider_count.agreement_text import explain_provider
from disksla.provider_count.comparison import Comparison
from disksla.provider_count.provider_span import ProviderSpan, span_of
from disksla.provider_count.provider_state import ProviderState
