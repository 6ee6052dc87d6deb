// Words that rules, alerts and dashboards share: how series are named, found and joined.
//
// Names are put together by `+`: `%` costs jsonnet milliseconds, and it is called thousands of times.
function(config) {
  local labels(names) = std.join(', ', names),

  host: labels(config.hostLabels),
  disk: labels(config.hostLabels + ['device']),

  // A metric of disksla, of the daemons that are looked at.
  of(metric, matchers=''):: metric + '{' + labels(
    std.filter(function(part) part != '', [config.diskslaSelector, matchers])
  ) + '}',

  // One info of each disk, recorded: a disk never has two, even while its terms change.
  info: 'instance_device:disksla_disk_info:topk',
  with_info(wanted)::
    '* on (' + self.disk + ') group_left (' + labels(wanted) + ') ' + self.info,

  // The name of what is recorded as a rate.
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
