// When somebody has to know, and what that person is told.
{
  local config = $._config,
  local promql = (import '../promql.libsonnet')(config),
  local trimmed = import '../trimmed.libsonnet',
  local of = promql.of,
  local window = config.rateWindow,
  local verdict_share(verdict) =
    'sum without (verdict) (' + promql.verdict_share('instance_device_verdict')
    + '{verdict="' + verdict + '"})',

  // -- what people are told -------------------------------------------------------------------

  local who = ['serial', 'model', 'terms', 'mountpoint'],
  local disk = 'Disk {{ $labels.device }} of {{ $labels.instance }}'
               + '{{ with $labels.mountpoint }}, mounted at {{ . }},{{ end }}'
               + ' (serial {{ or $labels.serial "unknown" }},'
               + ' model {{ or $labels.model "unknown" }}, {{ $labels.terms }})',
  local percent = '{{ $value | humanizePercentage }}',
  local duration = '{{ $value | humanizeDuration }}',
  // One more number of the same disk; nothing is said where there is none.
  local also(before, metric, unit, after) =
    local arguments = std.join(' ', ['$labels.' + name for name in config.hostLabels + ['device']]);
    local matchers = std.join(', ', [name + '=%q' for name in config.hostLabels + ['device']]);
    '{{ range printf `' + metric + '{' + matchers + '}` ' + arguments + ' | query }}'
    + before + '{{ . | value | ' + unit + ' }}' + after + '{{ end }}',

  local alert(name, severity, wait, expr, summary, description) = {
    alert: name,
    expr: expr,
    'for': wait,
    labels: { severity: severity },
    annotations: {
      summary: summary,
      description: description,
      [if config.runbookUrl != '' then 'runbook_url']:
        config.runbookUrl + '#' + std.asciiLower(name),
    },
  },
  // What holds of a disk, with who the disk is.
  local of_disk(expr) = '(\n' + indented(expr) + '\n)\n' + promql.with_info(who),
  local indented(expr) = '  ' + std.strReplace(trimmed(expr), '\n', '\n  '),

  // -- the promise ----------------------------------------------------------------------------

  local short_share = '%s\n  / (%s > 0)' % [
    verdict_share('below'),
    'sum without (verdict) (%s{verdict=~"met|throttled|below"})'
    % promql.verdict_share('instance_device_verdict'),
  ],
  local below = alert(
    'DiskBelowPromise',
    'warning',
    config.belowFor,
    of_disk(|||
      1 - %(compliance)s > %(share)g
      and
      %(short)s > %(share)g
      and
      sum without (verdict) (increase(%(below)s[1h])) >= %(seconds)d
    ||| % {
      compliance: promql.compliance('instance_device', '1h'),
      share: config.belowShare,
      short: short_share,
      below: of('disksla_verdict_seconds_total', 'verdict="below"'),
      seconds: config.belowAtLeastSeconds,
    }),
    'A disk gives less than its terms promise.',
    disk + ' gave less than promised in ' + percent
    + ' of the last hour, as far as the promise was put to the test.'
    + also(' Reads now: ', promql.rate('instance_device', 'disksla_reads_completed'), 'humanize', '/s.')
    + also(' Reads promised: ', 'disksla_limit_read_iops', 'humanize', '/s.')
    + also(' Writes now: ', promql.rate('instance_device', 'disksla_writes_completed'), 'humanize', '/s.')
    + also(' Writes promised: ', 'disksla_limit_write_iops', 'humanize', '/s.')
  ),

  local kinds = [['read', 'read_bytes'], ['write', 'written_bytes']],
  local slow_requests(kind, bytes) = |||
    label_replace(
      %(latency)s
        > %(factor)g * %(limit)s
      and
      %(bytes)s
        / %(requests)s <= %(size)d
      and ignoring (quantile)
      %(load)s{quantile="0.99"} < %(most)g,
      "requests", "%(kind)ss", "", ""
    )
  ||| % {
    kind: kind,
    latency: promql.mean('instance_device', 'disksla_%s_latency_seconds' % kind),
    factor: config.latencyFactor,
    limit: of('disksla_limit_latency_seconds'),
    bytes: promql.rate('instance_device', 'disksla_' + bytes),
    requests: promql.rate('instance_device', 'disksla_%ss_completed' % kind),
    size: config.latencyRequestBytes,
    load: promql.quantile('disksla_window_load_ratio'),
    most: config.latencyLoadRatio,
  },
  local slow_probes(kind) = |||
    label_replace(
      rate(%(sum)s[%(window)s])
        / (rate(%(count)s[%(window)s]) > 0)
        > %(factor)g * %(limit)s,
      "requests", "%(kind)ss of probes", "", ""
    )
  ||| % {
    kind: kind,
    sum: of('disksla_probe_%s_latency_seconds_sum' % kind),
    count: of('disksla_probe_%s_latency_seconds_count' % kind),
    window: config.latencyProbeWindow,
    factor: config.latencyFactor,
    limit: of('disksla_limit_latency_seconds'),
  },
  local latency = alert(
    'DiskLatencyAbovePromise',
    'warning',
    config.latencyFor,
    of_disk(
      std.join('or\n', [slow_requests(kind[0], kind[1]) for kind in kinds]
                       + [slow_probes(kind[0]) for kind in kinds])
    ) + '{latency_kind="guaranteed"}\n',
    'A disk is slower than its terms guarantee.',
    disk + ' takes ' + duration + ' for {{ $labels.requests }} on average, at a load that leaves it room'
    + also(', where ', 'disksla_limit_latency_seconds', 'humanizeDuration', ' is guaranteed') + '.'
  ),

  // -- held at the limit ----------------------------------------------------------------------

  // Of all the time, so that the first minutes after a start do not stand for the half hour.
  local throttled = alert(
    'DiskThrottled',
    'warning',
    config.throttledFor,
    of_disk('sum without (verdict) (rate(%s[%s])) > %g' % [
      of('disksla_verdict_seconds_total', 'verdict="throttled"'),
      config.throttledWindow,
      config.throttledShare,
    ]),
    'A disk is held at its limit for much of the time.',
    disk + ' was held at its limit for ' + percent + ' of the last ' + config.throttledWindow
    + ' while requests waited.'
    + also(' Held at: ', 'disksla_observed_ceiling_iops', 'humanize', ' IOPS.')
    + also(' Held at: ', 'disksla_observed_ceiling_bytes_per_second', 'humanize1024', 'B/s.')
  ),

  local hurt(metric, symptom, most) = |||
    label_replace(
      %s > %g,
      "symptom", "%s", "", ""
    )
  ||| % [metric, most, symptom],
  local hurts = alert(
    'DiskThrottlingHurtsHost',
    'warning',
    config.hurtFor,
    of_disk(
      hurt(
        'sum without (kind) (rate(%s[%s]))'
        % [of('disksla_throttled_pressure_seconds_total', 'kind="some"'), config.hurtWindow],
        'pressure',
        config.hurtPressureShare
      )
      + 'or\n'
      + hurt(
        'rate(%s[%s])' % [of('disksla_throttled_iowait_seconds_total'), config.hurtWindow],
        'iowait',
        config.hurtIowaitCpus
      )
    ),
    'Programs of a host wait because a disk is held at its limit.',
    disk + ' is held at its limit, and meanwhile'
    + ' {{ if eq $labels.symptom "pressure" }}some programs of the host stood still for I/O in '
    + percent + ' of the time{{ else }}{{ $value | humanize }} CPUs stood in iowait{{ end }}, over the last '
    + config.hurtWindow + '.'
  ),

  // -- credits --------------------------------------------------------------------------------

  local bound_share(bound) =
    of('disksla_burst_credits_' + bound + '_bound') + '\n  / '
    + of('disksla_burst_credits_capacity'),
  local exhausted = alert(
    'DiskBurstCreditsExhausted',
    'warning',
    config.creditsEmptyFor,
    of_disk('%s < %g' % [bound_share('upper'), config.creditsEmptyShare]),
    'A disk has used up its burst credits.',
    disk + ' has at most ' + percent + ' of its burst credits ({{ $labels.resource }}) left'
    + ' and falls back to its base limit.'
    + also(' Reads: ', 'disksla_limit_read_iops', 'humanize', '/s.')
    + also(' Writes: ', 'disksla_limit_write_iops', 'humanize', '/s.')
  ),
  local soon = alert(
    'DiskBurstCreditsExhaustSoon',
    'info',
    config.creditsSoonFor,
    of_disk(|||
      max_over_time(%(exhaustion)s[%(window)s]) < %(soon)d
      and
      %(lower)s < %(low)g
      unless
      %(upper)s < %(empty)g
    ||| % {
      exhaustion: of('disksla_burst_exhaustion_seconds'),
      window: config.creditsSoonWindow,
      soon: config.creditsSoonSeconds,
      lower: bound_share('lower'),
      low: config.creditsLowShare,
      upper: bound_share('upper'),
      empty: config.creditsEmptyShare,
    }),
    'A disk will soon have used up its burst credits.',
    disk + ' uses up its burst credits ({{ $labels.resource }}) in ' + duration
    + ' if it goes on like this, and may have less than '
    + '%g %% of them left.' % (100 * config.creditsLowShare)
  ),

  // -- trouble --------------------------------------------------------------------------------

  local stalled = alert(
    'DiskStalled',
    'critical',
    config.stalledFor,
    of_disk('sum without (verdict) (increase(%s[%s])) > %d' % [
      of('disksla_verdict_seconds_total', 'verdict="stalled"'),
      window,
      config.stalledSeconds,
    ]),
    'A disk does not answer.',
    disk + ' had requests in flight and completed none for ' + duration + ' of the last ' + window + '.'
    + also(' In flight now: ', 'disksla_inflight', 'humanize', '.')
  ),

  local probe_failing = alert(
    'DiskProbeFailing',
    'warning',
    config.probeFailingFor,
    of_disk('%s == 0' % of('disksla_probe_success')),
    'Probes of a disk fail.',
    disk + ': the last {{ $labels.kind }} probes failed, so nobody knows what a single request takes.'
  ),
  // A disk that is too busy to be probed is no fault of the prober: that is a turn too.
  local probe_stale = alert(
    'DiskProbeStale',
    'warning',
    config.probeStaleFor,
    of_disk(|||
      time() - %(turn)s > %(turns)g * %(interval)s + %(slack)d
      or
      (time() - %(turn)s unless %(interval)s) > %(cron)d
    ||| % {
      turn: of('disksla_probe_last_attempt_timestamp_seconds'),
      turns: config.probeStaleTurns,
      interval: of('disksla_probe_interval_seconds'),
      slack: config.probeStaleSlackSeconds,
      cron: config.probeStaleCronSeconds,
    }),
    'A disk is no longer probed.',
    disk + ': for ' + duration + ' no {{ $labels.kind }} probe was run, or put off for a reason that passes.'
  ),
  local verification = alert(
    'DiskVerificationFailed',
    'warning',
    config.verificationFor,
    of_disk(|||
      %(ratio)s
        / %(required)s
      and
      %(passed)s == 0
      and ignoring (test)
      time() - %(at)s < %(news)d
    ||| % {
      ratio: of('disksla_verification_ratio'),
      required: of('disksla_verification_required_ratio'),
      passed: of('disksla_verification_passed'),
      at: of('disksla_verification_timestamp_seconds'),
      news: config.verificationSeconds,
    }),
    'A disk failed its acceptance test.',
    disk + ' reached ' + percent + ' of what its provider stands by in the test {{ $labels.test }}.'
  ),
  local terms_unknown = alert(
    'DiskTermsUnknown',
    'info',
    config.termsUnknownFor,
    |||
      %(info)s == 1
      unless on (%(disk)s)
      (
        %(reads)s
        or
        %(writes)s
        or
        %(read_bytes)s
        or
        %(written_bytes)s
      ) > 0
    ||| % {
      info: promql.info,
      disk: promql.disk,
      reads: of('disksla_limit_read_iops'),
      writes: of('disksla_limit_write_iops'),
      read_bytes: of('disksla_limit_read_bytes_per_second'),
      written_bytes: of('disksla_limit_written_bytes_per_second'),
    },
    'Nothing is known of what a disk was sold as.',
    disk + ' is held against nothing: tell the daemon its terms, and it tells whether they are kept.'
  ),

  // -- ourselves ------------------------------------------------------------------------------

  local down = alert(
    'DiskSlaExporterDown',
    'warning',
    config.exporterDownFor,
    'up{%s} == 0\n' % config.diskslaSelector,
    'The daemon that watches the disks of a host cannot be reached.',
    'Prometheus gets no answer from disksla at {{ $labels.instance }}: nobody watches the disks there.'
  ),
  local late = alert(
    'DiskSlaSamplerLate',
    'warning',
    config.samplerLateFor,
    |||
      rate(%(missed)s[%(window)s])
        / (rate(%(ticks)s[%(window)s]) + rate(%(missed)s[%(window)s]) > 0)
        > %(share)g
    ||| % {
      missed: of('disksla_sampler_missed_ticks_total'),
      ticks: of('disksla_sampler_ticks_total'),
      window: window,
      share: config.samplerLateShare,
    },
    'The daemon looks at the disks less often than it should.',
    'disksla at {{ $labels.instance }} missed ' + percent
    + ' of its samples: its windows are longer, and short bursts are lost in them.'
  ),

  assert std.member(config.quantiles, '0.99') : 'quantiles: DiskLatencyAbovePromise needs 0.99',

  prometheusAlerts+:: {
    groups+: [
      { name: 'disksla.promise', interval: config.ruleInterval, rules: [below, latency, verification] },
      { name: 'disksla.limit', interval: config.ruleInterval, rules: [throttled, hurts, exhausted, soon] },
      {
        name: 'disksla.trouble',
        interval: config.ruleInterval,
        rules: [stalled, probe_failing, probe_stale, terms_unknown],
      },
      { name: 'disksla.ourselves', interval: config.ruleInterval, rules: [down, late] },
    ],
  },
}
