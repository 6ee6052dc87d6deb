// What sites choose for themselves. Override it with `--config` of render.py, or `+ {_config+:: ...}`.
{
  _config+:: {
    // Public address of the project. render.py takes it from `url` in setup.cfg. While it is empty,
    // dashboards have no link to it.
    projectUrl: '',
    // Page that the annotation `runbook_url` of an alert links to; `#` and the name of the alert are
    // appended. While it is empty, alerts have no such annotation.
    runbookUrl: if self.projectUrl == '' then '' else self.projectUrl + '/docs/runbook.md',

    // -- of rules and alerts --------------------------------------------------------------------

    // How the daemon's series are found. There is one series `up` of each daemon under it.
    diskslaSelector: 'job="disksla"',
    // What tells one daemon from another; add 'cluster' where one store holds many.
    hostLabels: ['job', 'instance'],

    // Rules are evaluated so often. Compliance over long windows is asked for more seldom, but
    // not so seldom that the newest value is older than the 5 min for which Prometheus shows it.
    ruleInterval: '1m',
    longRuleInterval: '4m',
    // Rates are taken over this, and are named after it; four scrapes of 60 s at least.
    rateWindow: '5m',
    // Seconds are added up in steps of this, and the steps into hours: every second once.
    stepWindow: '5m',
    quantiles: ['0.5', '0.99'],

    // Less than was promised: this share of the time in which the promise was put to the test,
    // within the last hour and within the last `rateWindow`, and so many seconds of it.
    belowShare: 0.1,
    belowAtLeastSeconds: 60,
    belowFor: '2m',

    // Slower than is guaranteed, by this factor, of requests so small, while 99 % of the windows
    // load the disk less than this; waiting in a queue of one's own making is nobody's breach.
    latencyFactor: 1.2,
    latencyRequestBytes: 16384,
    latencyLoadRatio: 0.8,
    latencyProbeWindow: '1h',
    latencyFor: '15m',

    // Held at the limit: this share of the time.
    throttledShare: 0.25,
    throttledWindow: '30m',
    throttledFor: '5m',

    // The host suffers from it: share of time in which some tasks waited, or CPUs in iowait.
    hurtPressureShare: 0.2,
    hurtIowaitCpus: 0.5,
    hurtWindow: '15m',
    hurtFor: '5m',

    // Credits: none left when the upper bound is below this share of the capacity; few when the
    // lower bound is below that share and they would be used up within so many seconds.
    creditsEmptyShare: 0.01,
    creditsEmptyFor: '5m',
    creditsLowShare: 0.5,
    creditsSoonSeconds: 1800,
    creditsSoonWindow: '5m',
    creditsSoonFor: '5m',

    // Requests in flight and none completes, so many seconds of `rateWindow`.
    stalledSeconds: 30,
    stalledFor: '1m',

    // Two turns of a probe every 10 min, which is the daemon's default, and some slack.
    probeFailingFor: '25m',
    // So many of its turns were due, and some slack; of a crontab line, so much time went by.
    probeStaleTurns: 2,
    probeStaleSlackSeconds: 300,
    probeStaleCronSeconds: 8 * 86400,
    probeStaleFor: '5m',

    // A failed acceptance test is news for so long.
    verificationSeconds: 30 * 86400,
    verificationFor: '1m',

    exporterDownFor: '5m',
    samplerLateShare: 0.05,
    samplerLateFor: '15m',
    termsUnknownFor: '1h',

    // -- of dashboards ----------------------------------------------------------------------------

    // By which they are found in Grafana.
    dashboardTags: ['disksla'],
    // From this share of the time on, a verdict is what is said of a disk, in its state and here.
    noticeableShare: 0.05,
    // A promise kept for less than this share of the time that put it to the proof is shown in red.
    dashboardCompliance: 0.999,
    // So many disks stand in the list of the worst.
    dashboardWorst: 100,
  },
}
