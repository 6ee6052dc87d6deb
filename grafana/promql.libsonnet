// Words that rules, alerts and dashboards share: how series are named, found and joined.
function(config) {
  local labels(names) = std.join(', ', names),

  host: labels(config.hostLabels),
  disk: labels(config.hostLabels + ['device']),

  // A metric of disksla, of the daemons that are looked at.
  of(metric, matchers=''):: '%s{%s}' % [
    metric,
    labels(std.filter(function(part) part != '', [config.diskslaSelector, matchers])),
  ],

  // One info of each disk, recorded: a disk never has two, even while its terms change.
  info: 'instance_device:disksla_disk_info:topk',
  with_info(wanted):: '* on (%s) group_left (%s) %s' % [self.disk, labels(wanted), self.info],

  // The name of what is recorded as a rate.
  rate(level, metric):: '%s:%s:rate%s' % [level, metric, config.rateWindow],
  mean(level, metric):: '%s:%s:mean%s' % [level, metric, config.rateWindow],
  quantile(metric)::
    'instance_device_quantile:%s:histogram_quantile_rate%s' % [metric, config.rateWindow],
  verdict_share(level)::
    '%s:disksla_verdict_seconds_per_assessed_second:ratio_rate%s' % [level, config.rateWindow],
  limit_share(level)::
    '%s:disksla_throttled_seconds_per_assessed_second:ratio_rate%s' % [level, config.rateWindow],
  step(level, metric):: '%s:%s:increase%s' % [level, metric, config.stepWindow],
  hour(level, metric):: '%s:%s:increase1h' % [level, metric],
  compliance(level, window):: '%s:disksla_sla_compliance:ratio%s' % [level, window],
  proven(level, window):: '%s:disksla_proven_seconds:sum%s' % [level, window],
  state: 'instance_device:disksla_state:worst%s' % config.rateWindow,
}
