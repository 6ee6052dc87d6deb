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

  // disksla_disk_info with exactly one series for each disk, even while its labels change.
  info: 'instance_device:disksla_disk_info:topk',
  // Add these labels of disksla_disk_info to a vector.
  with_info(added)::
    '* on (' + self.disk + ') group_left (' + labels(added) + ') ' + self.info,

  // disksla_machine_info with exactly one series for each group of disks.
  machine_info: 'topk by (' + self.group + ') (1, ' + self.of('disksla_machine_info') + ')',
  // Select the time throttled by a limit of the machine, and that throttled by others.
  by_machine: 'limit=~"machine_.*"',
  by_others: 'limit!~"machine_.*"',

  // Names of recorded series.
  rate(level, metric):: level + ':' + metric + ':rate' + config.rateWindow,
  mean(level, metric):: level + ':' + metric + ':mean' + config.rateWindow,
  quantile(metric)::
    'instance_device_quantile:' + metric + ':histogram_quantile_rate' + config.rateWindow,
  verdict_share(level)::
    level + ':disksla_verdict_seconds_per_assessed_second:ratio_rate' + config.rateWindow,
  limit_share(level)::
    level + ':disksla_throttled_seconds_per_assessed_second:ratio_rate' + config.rateWindow,
  step(level, metric):: level + ':' + metric + ':increase' + config.stepWindow,
  hour(level, metric):: level + ':' + metric + ':increase1h',
  compliance(level, window):: level + ':disksla_sla_compliance:ratio' + window,
  proven(level, window):: level + ':disksla_proven_seconds:sum' + window,
  state: 'instance_device:disksla_state:worst' + config.rateWindow,
}
