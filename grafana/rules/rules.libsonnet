// Recording rules: series of each disk, its compliance, and sums over all disks with the same terms.
{
  local config = $._config,
  local promql = (import '../promql.libsonnet')(config),
  local rule(name, expr, labels={}) =
    { record: name, expr: expr } + (if labels == {} then {} else { labels: labels }),
  local rate_of(metric) = 'rate(' + promql.of(metric) + '[' + config.rateWindow + '])',
  local ratio_of(above, below) = above + ' / (' + below + ' > 0)',

  local counters = ['reads_completed', 'writes_completed', 'read_bytes', 'written_bytes'],
  local rates = [
    rule(promql.rate('instance_device', 'disksla_' + counter), rate_of('disksla_' + counter + '_total'))
    for counter in counters
  ],

  // Mean latency: time over requests, from the kernel's counters; absent without requests.
  local latencies = [
    rule(
      promql.mean('instance_device', 'disksla_' + kind + '_latency_seconds'),
      ratio_of(
        rate_of('disksla_' + kind + '_time_seconds_total'),
        rate_of('disksla_' + kind + 's_completed_total')
      )
    )
    for kind in ['read', 'write']
  ],
  // Without requests a quantile is NaN; `>= 0` drops it.
  local quantiles = [
    rule(
      promql.quantile(metric),
      'histogram_quantile(' + quantile + ', ' + rate_of(metric + '_bucket') + ') >= 0',
      { quantile: quantile }
    )
    for metric in [
      'disksla_read_latency_seconds',
      'disksla_write_latency_seconds',
      'disksla_window_load_ratio',
    ]
    for quantile in config.quantiles
  ],
  local load = [
    rule(
      promql.mean('instance_device', 'disksla_window_load_ratio'),
      ratio_of(
        rate_of('disksla_window_load_ratio_sum'), rate_of('disksla_window_load_ratio_count')
      )
    ),
  ],

  // Shares of the assessed seconds: gaps are in neither part of the ratio.
  local assessed = 'sum without (verdict) (%s)' % rate_of('disksla_verdict_seconds_total'),
  local share_of(metric, label) =
    '%s\n/ ignoring (%s) group_left ()\n(%s > 0)\n' % [rate_of(metric), label, assessed],
  local shares = [
    rule(
      promql.verdict_share('instance_device_verdict'),
      share_of('disksla_verdict_seconds_total', 'verdict')
    ),
    rule(
      promql.limit_share('instance_device_limit'),
      share_of('disksla_throttled_seconds_total', 'limit')
    ),
  ],

  local info = [
    rule(promql.info, 'topk by (%s) (1, %s)' % [promql.disk, promql.of('disksla_disk_info')]),
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
      + seconds_of('limit', 'disksla_throttled_seconds_total', promql.by_others) + '\n'
    ),
  ] + [
    rule(promql.step('provider_terms', metric), by_terms(promql.step('instance_device', metric)))
    for metric in summed
  ],
  local levels = ['instance_device', 'provider_terms'],
  local over_time(metric, window) = 'sum_over_time(' + metric + '[' + window + '])',
  local hours = [
    rule(promql.hour(level, metric), over_time(promql.step(level, metric), '1h'))
    for level in levels
    for metric in summed
  ],
  // Compliance is absent where the promise was not tested; it is not 100 %.
  local compliance(level, window, parts) = [
    rule(
      promql.proven(level, window),
      over_time(parts(level, 'disksla_proven_seconds'), window)
    ),
    rule(
      promql.compliance(level, window),
      '1 - ' + ratio_of(
        over_time(parts(level, 'disksla_noncompliant_seconds'), window), promql.proven(level, window)
      )
    ),
  ],
  local short_compliance = std.flattenArrays([compliance(level, '1h', promql.step) for level in levels]),
  local long_compliance = std.flattenArrays([
    compliance(level, '1d', promql.step) + compliance(level, '30d', promql.hour)
    for level in levels
  ]),

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
  ],
  local fleet = [
    rule(
      'provider_terms:disksla_disks:count',
      'count without (%s) (%s)' % [std.join(', ', identity), promql.info]
    ),
    rule(
      promql.verdict_share('provider_terms_verdict'),
      'avg without (instance, device) (\n  %s\n  %s\n)\n' % [
        promql.verdict_share('instance_device_verdict'),
        promql.with_info(['provider', 'terms']),
      ]
    ),
  ] + [
    rule(
      promql.rate('provider_terms', 'disksla_' + counter),
      by_terms(promql.rate('instance_device', 'disksla_' + counter))
    )
    for counter in counters
  ],

  prometheusRules+:: {
    groups+: [
      {
        name: 'disksla.disks',
        interval: config.ruleInterval,
        rules: info + rates + latencies + quantiles + load + shares,
      },
      { name: 'disksla.fleet', interval: config.ruleInterval, rules: fleet },
      { name: 'disksla.sla.steps', interval: config.stepWindow, rules: steps },
      { name: 'disksla.sla.hours', interval: '1h', rules: hours },
      { name: 'disksla.sla.short', interval: config.ruleInterval, rules: short_compliance },
      { name: 'disksla.sla.long', interval: config.longRuleInterval, rules: long_compliance },
    ],
  },
}
