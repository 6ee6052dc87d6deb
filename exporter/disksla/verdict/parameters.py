"""Parameters of the detector: what each means, its unit, and where its value comes from."""

import msgspec


class Parameters(msgspec.Struct, frozen=True):
    """Constants of throttling detection and of verdicts.

    "Simulation" is tests/support/scenarios.py, "lab" is tests/lab, "recordings" are those of
    tests/verdict: disks behind a token bucket that is not ours, with PostgreSQL and fio.
    """

    longest_limiter_window_s: float = 1.0
    """Seconds. A limiter serves requests at least once in this time. Longer silence with requests
    in flight is a stall. Limiters with windows of up to 1 s are known."""
    longest_wait_s: float = 2.0
    """Seconds for which a verdict may wait."""
    kept_releases: int = 32
    """Releases that are kept of each disk: 3.2 s of samples at 100 ms."""
    enough_requests: int = 25
    """Requests from which a rate is computed: one more or less is 4 %. The mean of so many service
    times varies by about as much (lab)."""

    wait_floor_s: float = 0.001
    """I/O-seconds. Truncated milliseconds of the kernel explain this much waiting."""
    wait_share: float = 0.25
    """Of the service time. Requests waited if they took this much longer in total: service times
    vary by less on an idle disk (lab)."""
    batch_share: float = 0.02
    """Of the time. Requests of one batch wait for each other that much without a limiter (lab)."""
    occupied_share: float = 0.25
    """Of the time. Requests waited if they took more in total, while the service time is unknown.
    It is learned from releases in which they took less, and before which nothing was in flight: a
    disk that is throttled has a backlog."""
    low_load: float = 0.8
    low_load_share: float = 0.5
    """Of the time. It is learned from busier releases, too, if nothing was in flight after them
    and the load was at most this (queues of a disk are longer near its limit), or if they reached
    the limit and the requests in flight after them wait."""
    unlimited_load: float = 1.5
    """Or it is learned from the rest of a release that began with silence, with at least so many
    times the load of any limit. Were requests throttled all the same, they would be taken to need
    two thirds of the time that the limit demands, at most."""
    service_requests: int = 10
    service_ms: int = 50
    """Requests, and milliseconds that they took, from which a mean service time is computed: the
    kernel truncates to milliseconds, so one may be missing. Fewer milliseconds are summed up over
    releases, and make an upper bound until then. So do those of one release by themselves: that
    with which a throttled load begins, or one with enough_requests."""
    in_flight_releases: int = 3
    """A throttled disk has requests in flight at the end of one of this many releases. A disk that
    a limiter above it (a cgroup) feeds in batches has none most of the time (lab)."""
    one_by_one_share: float = 0.5
    """Of the time. Or its requests took at least so much, and not more than there is: one at a
    time, between which samples may fall again and again (PostgreSQL with one client)."""

    longest_span: int = 10
    """Releases. Longest span whose rate is compared with a limit of the terms."""
    confirmed_ticks: int = 3
    """Samples for which a disk is throttled at a limit until that is confirmed: a load may have
    the rate of a limit in one of them by chance."""
    releases_after_excess: int = 2
    """Releases at a limit that are needed after others exceeded it: the last one of a load ends
    within a window, and may have the rate of the limit by chance (lab)."""
    far_below_share: float = 0.25
    """Of a limit, which lower loads do not reach, however uncertain their rate is."""
    varying_releases: int = 10
    """Releases of a load that touches the limit now and then, over which it must not exceed it."""
    varying_requests: int = 4
    """Requests of a release that may reach it (in QEMU, a database that is far below its limit has
    releases with one)."""
    varying_peak_ratio: float = 1.0
    """Greatest load of one such release beyond the limit: at most two windows of the limiter fall
    into it."""
    varying_near_share: float = 0.4
    """Of a limit, from which on a release below it is near it."""
    varying_served: int = 2
    """Releases near the limit, before requests waited, from which on a load varies (simulation:
    Poisson arrivals at 95 % of a limit)."""
    mixed_releases: int = 10
    mixed_occupied_ratio: float = 1.5
    mixed_share: float = 0.7
    """If concurrent flushes are merged, the number of data writes is known as a range only. A disk
    is throttled if a limit is in the range in this share of so many releases and in their sum, and
    requests took so many times the time there was (lab: PostgreSQL with fsync on XFS has the limit
    in 8 to 10 of 10, and 3 requests in flight)."""

    usual_releases: int = 5
    """Releases from which the usual latency of a disk is known."""
    usual_load: float = 0.9
    """Of a limit. It is learned from releases with this load at most. With 0.8, loads at 95 % of a
    limit teach it too seldom (simulation)."""
    usual_deviations: int = 3
    """Standard deviations beyond the usual from which on requests wait."""
    irregular_share: float = 0.6
    """Of usual_releases. In so many, the number of requests differs by more than
    irregular_requests from the one before, if no limiter makes them wait."""

    same_load_share: float = 0.005
    """Of the load. The limit of a disk and that of its machine are equally near if their loads
    differ by less: then it is that of the disk."""

    straight_s: float = 2.0
    """Seconds for which a curve must be straight."""
    straight_requests: int = 1
    straight_share: float = 0.0025
    """A curve is straight if it differs from a line by at most this many requests plus, with
    several in flight, this share of a release. Over three seconds, the curves of limiters differ
    by 0.0 to 0.9 requests, of programs that imitate a constant service time by 3.2 to 6.4, and of
    real disks by 34 to 2,123 (recordings)."""
    transaction_requests: int = 1
    """If a share of the flushes is not counted, data writes between two releases differ by so many
    more: a sample may be taken after the flushes of a commit, and before its write. With SQLite on
    a busy machine, they differ by 2.3 in 10 s (lab)."""
    regular_requests: int = 200
    irregular_requests: float = 1.5
    """Requests from which a line is that of a limiter if no sum of its releases differs from a
    constant rate by more than so many. Those of limiters differ by 0.0 to 1.0 (lab; 2.0 at leaky
    buckets). Where service times vary by 15 % (standard deviation), 200 requests differ by less in
    one of eight runs (simulation); by 20 %, in one of a hundred."""
    certain_requests: int = 1600
    """Requests from which a line is that of a limiter although some of its releases differ by
    more. With 800, disks whose service times vary by 20 % were taken for a limiter for up to half
    of the time (simulation)."""
    straight_skipped_share: float = 0.25
    """Of the releases on a line. So many may end off it, by at most one release: samples are taken
    while a limiter lets requests pass, and the machine is late (lab)."""
    one_deep_requests: int = 150
    """Requests in straight_s that are needed with one in flight at a time: at a lower rate, a disk
    with nearly constant service times is as regular."""
    open_releases: int = 2
    """Releases on a straight line from which on a verdict waits for the rest of straight_s."""
    straight_releases: int = 4
    """Least number of releases on a straight line."""
    straight_busy_share: float = 0.75
    """Of the time. Requests of a straight curve were in flight that long: a program that starts
    one whenever a timer ends has a straight curve, too."""
    straight_latency_s: float = 0.001
    """Seconds. Least mean latency of requests that wait for a limit which is not in the terms."""

    late_share: float = 0.03
    """Of the interval. A sample that is later shows whether one fast request at a time is served
    at a rate by time: by a disk, not by a limiter with windows. Where that is not known, samples
    are late by 0.05 and 0.1."""
    late_samples: int = 4
    late_samples_needed: int = 2
    """So many late samples are taken, and it is a limiter if so many do not count what their time
    explains, but three requests more or less. One may be by chance: a limiter that serves a window
    may have served as much by then, and a machine may be busy."""

    window_releases: int = 10
    """Releases from which the window of a limiter is looked for."""
    window_check_s: float = 0.5
    """Seconds after which it is looked for again, while none was found."""
    window_requests: int = 12
    """Least amount in a window: any number of requests would be near some multiple of a smaller
    one. With 8, another one of 400 disks without a limiter was throttled (simulation)."""
    window_same_share: float = 0.9
    """Of the releases. If so many have the same number of windows, two or more, each may have half
    or twice as many. Without it, 22 of 451 lengths are wrong instead of 8 of 428 (simulation)."""
    window_late_ratio: float = 2.0
    """Of a window. By how much the times of samples may differ from the ends of the windows that
    they have counted: a sample is up to one window later, and the sum is known but for one."""

    late_requests: int = 400
    """Requests from which a line is that of a limiter although straight_skipped_share of the
    samples are below it, or half as many above it; and so many in kept_releases. With 300, disks
    with 100 requests a second whose service times vary by 20 % are throttled for up to a third of
    the time. So are those with 200 if as many may be above as below (simulation)."""

    ceiling_s: float = 0.45
    ceiling_releases: int = 4
    """A ceiling is computed from at least so many seconds and releases, if there are as many."""
    ceiling_memory: int = 600
    """Releases after which older ones count half."""
    ceiling_change_share: float = 0.1
    """A rate that differs from the ceiling by more than this share starts another ceiling."""
    ceiling_error_share: float = 0.01
    """A ceiling may be wrong by this share (lab), beside one request or sample more or less."""
    ceiling_span_share: float = 0.05
    """How much a span with flushes counts, beside those before. One request more or less in the
    span of 3 s is 1.2 % of 28 IOPS; spans come with each release, so twenty take seconds. In seven
    recordings of the lab, the ceiling then stayed within 0.2 to 0.8 times the range."""

    burst_windows: int = 3
    """A burst has more than a limiter admits in so many of its windows, or in so many samples:
    any limiter admits a window at once, and samples may count another with it."""
    burst_starts: int = 32
    """Times that are kept at which a burst may have started. The hull of a curve with noise has
    about twice the logarithm of its points."""

    below_releases: int = 10
    """A disk is below its promise if its rate over this many releases is."""
    default_depth: int = 32
    """Queue depth at which a promise applies if the terms have none: providers and fio users test
    a disk with it."""
    deep_share: float = 0.9
    """Of the depth. Suffices, because a sample may be taken while requests are replaced."""
    pieces: int = 8
    """Pieces that a large request may be split into: few devices accept less than 128 KiB of
    1 MiB."""


P = Parameters()
