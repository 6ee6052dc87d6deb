// Settings of a site. Override them with `--config` of render.py, or with `+ {_config+:: ...}`.
{
  _config+:: {
    // Public address of the project. render.py takes it from `url` in setup.cfg. While it is empty,
    // dashboards have no link to it.
    projectUrl: '',
    // Address of the daemon that an alert is about, as a template of Prometheus: change it for TLS, or
    // where `instance` is not its address.
    daemonUrl: 'http://{{ $labels.instance }}',
    // Page that the annotation `runbook_url` of an alert links to; `#` and the name of the alert are
    // appended. Every daemon has it. While it is empty, alerts have no such annotation.
    runbookUrl: self.daemonUrl + '/runbook',
    // Address of Grafana, such as https://grafana.example.com, to which the annotation `dashboard_url`
    // links. While it is empty, alerts have no such annotation.
    grafanaUrl: '',

    // -- rules and alerts -----------------------------------------------------------------------

    // Selects the series of disksla, and the series `up` of each daemon.
    diskslaSelector: 'job="disksla"',
    // Labels that identify a daemon. Targets need no label `cluster`; it tells hosts of the same name
    // apart where one store holds several clusters.
    hostLabels: ['cluster', 'job', 'instance'],

    // Evaluation intervals. Shares of a quarter of an hour or more, and the state of disks, change slowly;
    // sums by terms, compliance, and alerts that wait for long even more so. All are shorter than 5 min:
    // Prometheus does not show values older than that.
    ruleInterval: '1m',
    slowRuleInterval: '2m',
    longRuleInterval: '4m',
    // Window of rates, and suffix of the names of recorded rates. At least four scrape intervals.
    rateWindow: '5m',
    // Compliance adds up increases over this window, first to hours; every second counts once.
    stepWindow: '5m',

    // DiskBelowPromise: share of the tested time (verdicts met, throttled and below) in which the
    // disk was below its promise, over the last hour and over the last `rateWindow`, and the least
    // number of seconds below the promise within the hour. Time throttled by a limit of the machine
    // does not count as tested in the hour, but it does in `rateWindow`: while the machine throttles
    // nearly all the time, a few windows in between are no evidence against the disk.
    belowShare: 0.1,
    belowAtLeastSeconds: 60,
    belowFor: '2m',

    // DiskLatencyAbovePromise: mean latency as a multiple of the guaranteed latency. Only requests
    // up to this size count, and only while this share of the windows has at most this load, which must
    // be a bound of the histogram in all profiles: at a higher load, requests wait in the queue of the
    // host itself.
    // Nor do requests count while a limit of the machine throttles the disk for more than this share.
    latencyFactor: 1.2,
    latencyRequestBytes: 16384,
    latencyLoadRatio: '0.8',
    latencyLoadShare: 0.99,
    latencyMachineShare: 0.01,
    latencyProbeWindow: '1h',
    latencyFor: '15m',

    // DiskThrottled: share of the time in which the disk was throttled, but not by a limit of the
    // machine.
    throttledShare: 0.25,
    throttledWindow: '30m',
    throttledFor: '5m',

    // DiskNearLimit: share of the window in which the load was above this share of the limit, which must be
    // a bound of the histogram in all profiles.
    nearLoadRatio: '0.8',
    nearShare: 0.5,
    nearWindow: '30m',
    nearFor: '5m',

    // DiskSlow: share of `throttledWindow` in which requests took five times what is usual, or more.
    slowShare: 0.25,
    slowFor: '5m',

    // DiskLimitNotExplained: share of `throttledWindow` in which a disk with terms was throttled at an
    // unknown limit.
    unexplainedShare: 0.05,
    unexplainedFor: '5m',

    // DiskThrottlingHurtsHost: share of the time in which some tasks were stalled for I/O, or number
    // of CPUs in iowait, while the disk was throttled.
    throttlingImpactPressureShare: 0.2,
    throttlingImpactIowaitCpus: 0.5,
    throttlingImpactWindow: '15m',
    throttlingImpactFor: '5m',

    // DiskBurstCreditsExhausted: the upper bound of the credits is below this share of the capacity.
    // DiskBurstCreditsExhaustSoon: the lower bound is below this share, and at the present rate the
    // credits last less than this many seconds; or at that of `creditsTrendWindow`, less than
    // `creditsTrendSeconds`.
    creditsEmptyShare: 0.01,
    creditsEmptyFor: '5m',
    creditsLowShare: 0.5,
    creditsSoonSeconds: 1800,
    creditsSoonWindow: '5m',
    creditsSoonFor: '5m',
    creditsTrendWindow: '1h',
    creditsTrendSeconds: 4 * 3600,

    // MachineLimitReached: share of the time in which the disks of a group waited for the limit that
    // the machine has for all of them.
    machineLimitShare: 0.25,
    machineLimitWindow: '1h',
    machineLimitFor: '5m',

    // MachineBurstCreditsLow: shares and times of DiskBurstCreditsExhaustSoon and
    // DiskBurstCreditsExhausted (above), for the burst credits of a group.
    machineCreditsFor: '5m',

    // DiskStalled: seconds with requests in flight and none completed, within `rateWindow`.
    stalledSeconds: 30,
    stalledFor: '1m',

    // DiskProbeFailing: two attempts at the default interval of 10 min, with a margin.
    probeFailingFor: '25m',
    // DiskProbeStale: this many intervals without an attempt, with a margin; for probes with a
    // crontab line, which have no interval, this much time.
    probeStaleIntervals: 2,
    probeStaleSlackSeconds: 300,
    probeStaleCronSeconds: 8 * 86400,
    probeStaleFor: '5m',

    // DiskVerificationFailed: the alert ends this long after the test.
    verificationSeconds: 30 * 86400,
    verificationFor: '1m',

    exporterDownFor: '5m',
    samplerLateShare: 0.05,
    samplerLateFor: '15m',
    samplerFailedFor: '1m',
    termsUnknownFor: '1h',
    termsOldFor: '15m',

    // -- hosts with node_exporter and the file of `disksla limits --textfile`, without a daemon ----

    // Selects the series of node_exporter.
    nodeSelector: 'job="node"',
    // Page that the annotation `runbook_url` of these alerts links to, as `runbookUrl`; no daemon serves
    // it. While it is empty, they have no such annotation.
    nodeRunbookUrl: '',
    // Window of mean rates. At least two scrape intervals.
    nodeRateWindow: '2m',
    // DiskAtLimit, MachineAtLimit: share of the window in which the mean load was at least this, and at
    // most as far above 1 as is known of the limiter, with this many requests in flight on average.
    // DiskLoadHigh has the shares and times of DiskNearLimit.
    atLimitLoadRatio: 0.988,
    atLimitInflight: 0.5,
    atLimitShare: 0.5,
    atLimitWindow: '15m',
    atLimitFor: '2m',

    // -- dashboards -----------------------------------------------------------------------------

    // Tags of the dashboards in Grafana.
    dashboardTags: ['disksla'],
    // Least share of the time for which a verdict determines the state of a disk, in the recording
    // rule and on the dashboards.
    noticeableShare: 0.05,
    // Compliance below this is red.
    dashboardCompliance: 0.999,
    // Number of disks in the table of the worst disks.
    dashboardWorst: 100,
  },
}
