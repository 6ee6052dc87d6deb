// Recording rules: what lists of ten thousand disks sort by, the compliance of each disk, and sums over
// all disks with the same terms. Alerts and dashboards compute the rest from scraped series.
{
  local config = $._config,
  local promql = (import '../promql.libsonnet')(config),
  local rule(name, expr, labels={}) =
    { record: name, expr: expr } + (if labels == {} then {} else { labels: labels }),
  local rate_of(metric) = 'rate(' + promql.of(metric) + '[' + config.rateWindow + '])',
  local ratio_of(above, below) = above + ' / (' + below + ' > 0)',

  local info = [
    rule(promql.info, promql.info_with_claim),
  ],

  // Compliance. Increases over `stepWindow` are recorded once and added up, so that an hour reads
  // 12 samples, a day 288, and 30 days 720 samples of an hour. Seconds that were not scraped are
  // missing in both parts of the ratio, so gaps do not distort it. A stalled disk does not comply
  // either. Seconds throttled by a limit of the
  // machine are in neither part: they say nothing about the disk. They are left out of the seconds by
  // limit, not subtracted from those by verdict: a difference of two rates is rarely exactly 0.
  local seconds_of(label, metric, matcher) = 'sum without (%s) (increase(%s[%s]))' % [
    label,
    promql.of(metric, matcher),
    config.stepWindow,
  ],
  local seconds_by_verdict(matcher) = seconds_of('verdict', 'disksla_verdict_seconds_total', matcher),
  local summed = ['disksla_noncompliant_seconds', 'disksla_proven_seconds'],
  local by_terms(metric) =
    'sum without (instance, device) (\n  ' + metric + '\n  '
    + promql.with_info(['provider', 'terms']) + '\n)\n',
  local steps = [
    rule(
      promql.step('instance_device', 'disksla_noncompliant_seconds'),
      seconds_by_verdict('verdict=~"below|stalled"')
    ),
    rule(
      promql.step('instance_device', 'disksla_proven_seconds'),
      seconds_by_verdict('verdict=~"met|below|stalled"') + '\n+\n'
      + seconds_of('limit', 'disksla_throttled_seconds_total', promql.by_disk) + '\n'
    ),
  ] + [
    rule(promql.step('provider_terms', metric), by_terms(promql.step('instance_device', metric)))
    for metric in summed
  ],
  local levels = ['instance_device', 'provider_terms'],
  local hours = [
    rule(promql.hour(level, metric), promql.over_time(promql.step(level, metric), '1h'))
    for level in levels
    for metric in summed
  ],
  // Compliance is absent where the promise was not tested; it is not 100 %. Of one hour, alerts and
  // dashboards compute that of disks from the steps.
  local proven(level, window, parts) =
    promql.over_time(parts(level, 'disksla_proven_seconds'), window),
  local compliance(level, window, parts) = rule(
    promql.compliance(level, window),
    '1 - ' + ratio_of(
      promql.over_time(parts(level, 'disksla_noncompliant_seconds'), window),
      proven(level, window, parts)
    )
  ),
  local of_terms(window, parts) = [
    rule(promql.proven('provider_terms', window), proven('provider_terms', window, parts)),
    compliance('provider_terms', window, parts),
  ],
  local short_compliance = of_terms('1h', promql.step),
  local long_compliance = [
    compliance('instance_device', '1d', promql.step),
    compliance('instance_device', '30d', promql.hour),
  ] + of_terms('1d', promql.step) + of_terms('30d', promql.hour),

  // Sums by provider and terms: a dozen series for ten thousand disks. The panels of the whole fleet
  // read only these.
  local identity = [
    'instance',
    'device',
    'serial',
    'wwn',
    'model',
    'budget',
    'latency_kind',
    'rotational',
    'terms_source',
    'machine_type',
    'kind',
  ],
  local verdict_seconds = promql.rate('provider_terms_verdict', 'disksla_verdict_seconds'),
  local fleet = [
    rule(
      'provider_terms:disksla_disks:count',
      'count without (%s) (\n%s\n)\n' % [std.join(', ', identity), promql.disk_info]
    ),
    rule(verdict_seconds, by_terms(promql.verdict_rate(''))),
    // Shares of the assessed seconds: gaps are in neither part of the ratio.
    rule(
      promql.verdict_share('provider_terms_verdict'),
      '%s\n/ ignoring (verdict) group_left ()\n(sum without (verdict) (%s) > 0)\n'
      % [verdict_seconds, verdict_seconds]
    ),
  ] + [
    rule(
      promql.rate('provider_terms', 'disksla_' + counter),
      by_terms(rate_of('disksla_' + counter + '_total'))
    )
    for counter in ['reads_completed', 'writes_completed', 'read_bytes', 'written_bytes']
  ],

  prometheusRules+:: {
    groups+: [
      {
        name: 'disksla.kernel.disks',
        interval: config.ruleInterval,
        rules: info,
      },
      { name: 'disksla.fleet', interval: config.longRuleInterval, rules: fleet },
      { name: 'disksla.sla.steps', interval: config.stepWindow, rules: steps },
      { name: 'disksla.sla.hours', interval: '1h', rules: hours },
      { name: 'disksla.sla.short', interval: config.ruleInterval, rules: short_compliance },
      { name: 'disksla.sla.long', interval: config.longRuleInterval, rules: long_compliance },
    ],
  },
}
