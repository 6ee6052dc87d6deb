"""What the provider counts of a disk, beside the verdicts of the same time.

- `provider_state`: sums over the readings of a statistics page (`disksla.clouds.ebs_statistics`).
- `agreement`: seconds by the limit of the verdict and by that of the provider, and in sentences.
- `comparison`: verdicts that wait for a reading, and get the name of the limit from it.
"""

from disksla.state.provider_count.agreement import (
    NOT_THROTTLED,
    Agreement,
    explain_provider,
    named_limit,
    with_limit,
)
from disksla.state.provider_count.comparison import Comparison, ProviderSpan, span_of
from disksla.state.provider_count.provider_state import ProviderState
