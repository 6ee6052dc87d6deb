"""Metrics of who uses a disk: units, containers and pods, while it is throttled or busy."""

from collections.abc import Callable

from disksla.kernel.consumers import ConsumerSums, ConsumerTotals
from disksla.serve.metrics.metric import Labelled, Metric, Value
from disksla.state.pipeline import DiskSnapshot


def _by_consumer(
    series: Callable[[ConsumerTotals], ConsumerSums],
) -> Callable[[DiskSnapshot], Value]:
    def value(snapshot: DiskSnapshot) -> Labelled | None:
        return {(*who,): total for who, total in series(snapshot.consumers).sums.items()} or None

    return value


_WATCHED = (
    "while the disk was watched: throttled or busy, and a minute after. Divide by"
    " disksla_consumer_watched_seconds_total. consumer is a unit, container or pod (at most five"
    " of a disk have series), other, kernel (such as journals) or unattributed (groups that ended"
    " before they were known). program is empty where only the group is known. Absent where"
    " consumers are not known (docs/consumers.md)."
)

CONSUMER_METRICS: tuple[Metric[DiskSnapshot], ...] = (
    Metric(
        "disksla_consumer_requests_total",
        f"Requests by consumer, {_WATCHED} By control groups only where few requests are merged.",
        _by_consumer(lambda consumers: consumers.requests),
        ("consumer", "program"),
    ),
    Metric(
        "disksla_consumer_bytes_total",
        f"Bytes read and written by consumer, {_WATCHED}",
        _by_consumer(lambda consumers: consumers.bytes),
        ("consumer", "program"),
    ),
    Metric(
        "disksla_consumer_watched_seconds_total",
        "Seconds in which the consumers of the disk were known. Absent while there were none.",
        lambda snapshot: snapshot.consumers.watched_s or None,
    ),
)
