// PromQL that rules, alerts and dashboards share: selectors, names of recorded series, joins.
//
// Strings are joined by `+`: a call of `%` takes jsonnet milliseconds, and there are thousands here.
function(config) {
  local labels(names) = std.join(', ', names),

  host: labels(config.hostLabels),
  disk: labels(config.hostLabels + ['device']),
  group: labels(config.hostLabels + ['group']),

  // A metric of the selected daemons.
  of(metric, matchers=''):: metric + '{' + labels(
    std.filter(function(part) part != '', [config.diskslaSelector, matchers])
  ) + '}',

  // The last value within `rateWindow`: for gauges in alerts. A single failed scrape, as while a daemon
  // restarts, would else end an alert, and `for` would start again.
  recent(metric, matchers=''):: 'last_over_time(' + self.of(metric, matchers) + '[' + config.rateWindow + '])',
  // An info metric with exactly one series for each disk or group, the present one where there is one.
  one_info(metric, identity)::
    local one(vector) = 'topk by (' + identity + ') (1, ' + vector + ')';
    one(self.of(metric)) + '\nor on (' + identity + ')\n' + one(self.recent(metric)),

  // Labels that name the claim of Kubernetes, where a disk is one. Others have none, or the namespace of
  // the target.
  claim: ['namespace', 'persistentvolumeclaim'],
  // disksla_disk_info with exactly one series for each disk, even while its labels change, and while a
  // scrape fails; with the claim.
  info: 'instance_device:disksla_disk_info:topk',
  disk_info: self.one_info('disksla_disk_info', self.disk),
  info_with_claim:
    '(\n' + self.disk_info + '\n) * on (' + self.disk + ') group_left (' + labels(self.claim) + ') (\n'
    + self.one_info('disksla_kubernetes_volume_info', self.disk) + '\n)\nor on (' + self.disk + ') (\n'
    + self.disk_info + '\n)\n',
  // Add these labels of disksla_disk_info to a vector.
  with_info(added, matcher='')::
    '* on (' + self.disk + ') group_left (' + labels(added) + ') ' + self.info
    + (if matcher == '' then '' else '{' + matcher + '}'),
  // Select disks that have limits, and those that have none: there is no budget without a limit.
  with_limits: 'budget!=""',
  without_limits: 'budget=""',

  // Seconds per second with a verdict, or throttled by some limits, over `rateWindow`.
  verdict_rate(matcher)::
    'rate(' + self.of('disksla_verdict_seconds_total', matcher) + '[' + config.rateWindow + '])',
  throttled_rate(matcher)::
    'sum without (limit) (rate(' + self.of('disksla_throttled_seconds_total', matcher)
    + '[' + config.rateWindow + ']))',
  // Seconds per second in which a disk was slow, beside what is promised or usual.
  slow_rate:
    'sum without (than) (rate(' + self.of('disksla_slow_seconds_total') + '[' + config.rateWindow + ']))',

  // disksla_machine_info with exactly one series for each group of disks.
  machine_info: self.one_info('disksla_machine_info', self.group),
  // Select the time throttled by a limit of the machine, that throttled by others, and that throttled at
  // a limit of the disk: at an unknown one, it is not known whether the promise is kept.
  by_machine: 'limit=~"machine_.*"',
  by_others: 'limit!~"machine_.*"',
  by_disk: 'limit=~"iops|bandwidth"',

  // The share of burst credits that is left at a bound.
  credits_left(prefix): function(bound)
    $.recent('disksla_' + prefix + '_credits_' + bound + '_bound') + ' / '
    + $.recent('disksla_' + prefix + '_credits_capacity'),
  // Seconds until burst credits end: within minutes at the present rate, or within hours at that of the
  // last hour.
  credits_end(prefix): |||
    max_over_time(%(exhaustion)s[%(window)s]) < %(soon)d
    or
    %(left)s / -(deriv(%(credits)s[%(trend)s]) < 0) < %(hours)d
  ||| % {
    exhaustion: $.of('disksla_' + prefix + '_exhaustion_seconds'),
    left: $.recent('disksla_' + prefix + '_credits'),
    credits: $.of('disksla_' + prefix + '_credits'),
    window: config.creditsSoonWindow,
    soon: config.creditsSoonSeconds,
    trend: config.creditsTrendWindow,
    hours: config.creditsTrendSeconds,
  },

  // Names of recorded series.
  rate(level, metric):: level + ':' + metric + ':rate' + config.rateWindow,
  verdict_share(level)::
    level + ':disksla_verdict_seconds_per_assessed_second:ratio_rate' + config.rateWindow,
  step(level, metric):: level + ':' + metric + ':increase' + config.stepWindow,
  hour(level, metric):: level + ':' + metric + ':increase1h',
  // Sum of steps over a window; the only way to query them.
  over_time(parts, window):: 'sum_over_time(' + parts + '[' + window + '])',
  compliance(level, window):: level + ':disksla_sla_compliance:ratio' + window,
  proven(level, window):: level + ':disksla_proven_seconds:sum' + window,
  state: 'instance_device:disksla_state:worst' + config.rateWindow,
}
