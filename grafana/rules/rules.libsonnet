// What is recorded: of each disk, of its compliance, and of all disks sold under the same terms.
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

  // Seconds over requests, by the kernel's own counters. Without requests there is no latency.
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
  // A quantile of nothing is NaN, which is not >= 0 and so gives no sample.
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

  // Shares of the seconds that were assessed: those of a gap are nobody's.
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

  // Compliance. Seconds are added up once, in steps, so that an hour is read from 12 samples, a
  // day from 288 and a month from 720 hours. What is missed while Prometheus is down is missing
  // below and above the line of the fraction, and no ratio is bent by it.
  local seconds_of(matcher) = 'sum without (verdict) (increase(%s[%s]))' % [
    promql.of('disksla_verdict_seconds_total', matcher),
    config.stepWindow,
  ],
  local summed = ['disksla_below_seconds', 'disksla_proven_seconds'],
  local by_terms(metric) =
    'sum without (instance, device) (\n  ' + metric + '\n  '
    + promql.with_info(['provider', 'terms']) + '\n)\n',
  local steps = [
    rule(promql.step('instance_device', 'disksla_below_seconds'), seconds_of('verdict="below"')),
    rule(
      promql.step('instance_device', 'disksla_proven_seconds'),
      seconds_of('verdict=~"met|throttled|below"')
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
  // Where nothing was proven there is no compliance, and never one of 100 %.
  local compliance(level, window, parts) = [
    rule(
      promql.proven(level, window),
      over_time(parts(level, 'disksla_proven_seconds'), window)
    ),
    rule(
      promql.compliance(level, window),
      '1 - ' + ratio_of(
        over_time(parts(level, 'disksla_below_seconds'), window), promql.proven(level, window)
      )
    ),
  ],
  local short = std.flattenArrays([compliance(level, '1h', promql.step) for level in levels]),
  local long = std.flattenArrays([
    compliance(level, '1d', promql.step) + compliance(level, '30d', promql.hour)
    for level in levels
  ]),

  // By terms: ten thousand disks come down to a dozen series here, and dashboards of the whole
  // fleet ask for nothing else.
  local identity = [
    'instance',
    'device',
    'serial',
    'wwn',
    'model',
    'budget',
    'latency_kind',
    'rotational',
    'mountpoint',
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
      { name: 'disksla.sla.short', interval: config.ruleInterval, rules: short },
      { name: 'disksla.sla.long', interval: config.longRuleInterval, rules: long },
    ],
  },
}
