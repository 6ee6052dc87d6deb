// Alerts, with the text of their annotations.
{
  local config = $._config,
  local promql = (import '../promql.libsonnet')(config),
  local text = (import 'text.libsonnet')(config),
  local trimmed = import '../trimmed.libsonnet',
  local machine = (import 'machine.libsonnet')(config),
  local of = promql.of,
  local recent = promql.recent,
  local window = config.rateWindow,

  local alert = text.alert,
  local percent = text.percent,
  local duration = text.duration,
  local also = text.also,

  local identity = ['serial', 'model', 'terms'] + promql.claim,
  local disk = text.disk,
  local disk_alert = text.disk_alert,
  // Add the labels that identify the disk.
  local of_disk(expr, matcher='', more=[]) =
    '(\n' + text.indented(expr) + '\n)\n' + promql.with_info(identity + more, matcher),
  local rate(metric) = 'rate(' + of('disksla_' + metric) + '[' + window + '])',

  // -- promise --------------------------------------------------------------------------------

  // Time throttled by a limit of the machine does not count in compliance, but it counts here:
  // otherwise a few windows in between would be most of the tested time.
  local seconds_of(verdicts) = 'sum without (verdict) (%s)' % promql.verdict_rate(verdicts),
  local short_share = '%s\n  / (%s > 0)' % [
    seconds_of('verdict="below"'),
    seconds_of('verdict=~"met|throttled|below"'),
  ],
  local in_hour(metric) = promql.over_time(promql.step('instance_device', metric), '1h'),
  local now(kind) = 'rate(disksla_' + kind + '_completed_total{@}[' + window + '])',
  local below = disk_alert(
    'DiskBelowPromise',
    'warning',
    config.belowFor,
    of_disk(|||
      %(noncompliant)s
        / (%(proven)s > 0) > %(share)g
      and
      %(short)s > %(share)g
      and
      sum without (verdict) (increase(%(below)s[1h])) >= %(seconds)d
    ||| % {
      noncompliant: in_hour('disksla_noncompliant_seconds'),
      proven: in_hour('disksla_proven_seconds'),
      share: config.belowShare,
      short: short_share,
      below: of('disksla_verdict_seconds_total', 'verdict="below"'),
      seconds: config.belowAtLeastSeconds,
    }),
    'A disk gives less than its terms promise.',
    disk + ' gave less than promised for ' + percent + ' of the tested time of the last hour.'
    + also(' Reads now: ', now('reads'), 'humanize', '/s.')
    + also(' Reads promised: ', 'disksla_limit_read_iops', 'humanize', '/s.')
    + also(' Writes now: ', now('writes'), 'humanize', '/s.')
    + also(' Writes promised: ', 'disksla_limit_write_iops', 'humanize', '/s.')
  ),

  local kinds = [['read', 'read_bytes'], ['write', 'written_bytes']],
  local slow_requests(kind, bytes) = |||
    label_replace(
      %(time)s
        / (%(requests)s > 0)
        > %(factor)g * %(limit)s
      and
      %(bytes)s
        / %(requests)s <= %(size)d,
      "requests", "%(kind)ss", "", ""
    )
  ||| % {
    kind: kind,
    time: rate(kind + '_time_seconds_total'),
    requests: rate(kind + 's_completed_total'),
    factor: config.latencyFactor,
    limit: recent('disksla_limit_latency_seconds'),
    bytes: rate(bytes + '_total'),
    size: config.latencyRequestBytes,
  },
  local windows(bound) =
    'sum without (le) (rate(%s[%s]))'
    % [of('disksla_window_load_ratio_bucket', 'le="%s"' % bound), window],
  local at_low_load(expr) = |||
    (
    %(expr)s
    )
    and on (%(disk)s)
    %(low)s
      / %(all)s >= %(share)g
    unless on (%(disk)s)
    %(throttled)s > %(most)g
  ||| % {
    expr: text.indented(expr),
    disk: promql.disk,
    low: windows(config.latencyLoadRatio),
    all: windows('+Inf'),
    share: config.latencyLoadShare,
    throttled: promql.throttled_rate(promql.by_machine),
    most: config.latencyMachineShare,
  },
  local slow_probes(kind) = |||
    label_replace(
      rate(%(sum)s[%(window)s])
        / (rate(%(count)s[%(window)s]) > 0)
        > %(factor)g * %(limit)s
      unless
      sum without (limit) (rate(%(throttled)s[%(window)s])) > %(share)g,
      "requests", "%(kind)ss of probes", "", ""
    )
  ||| % {
    kind: kind,
    throttled: of('disksla_throttled_seconds_total', promql.by_machine),
    share: config.latencyMachineShare,
    sum: of('disksla_probe_%s_latency_seconds_sum' % kind),
    count: of('disksla_probe_%s_latency_seconds_count' % kind),
    window: config.latencyProbeWindow,
    factor: config.latencyFactor,
    limit: recent('disksla_limit_latency_seconds'),
  },
  local latency = disk_alert(
    'DiskLatencyAbovePromise',
    'warning',
    config.latencyFor,
    of_disk(
      at_low_load(std.join('or\n', [slow_requests(kind[0], kind[1]) for kind in kinds]))
      + std.join('', ['or\n' + slow_probes(kind[0]) for kind in kinds]),
      'latency_kind="guaranteed"'
    ),
    'The latency of a disk is above the latency that its terms guarantee.',
    disk + ' has a mean latency of ' + duration + ' for {{ $labels.requests }} while its load is'
    + ' below the limit.'
    + also(' Guaranteed: ', 'disksla_limit_latency_seconds', 'humanizeDuration', '.')
  ),

  // Against what is usual for the disk itself; the alert above is about what is guaranteed.
  local slow = disk_alert(
    'DiskSlow',
    'warning',
    config.slowFor,
    of_disk('sum without (than) (rate(%s[%s])) > %g' % [
      of('disksla_slow_seconds_total', 'than="usual"'),
      config.throttledWindow,
      config.slowShare,
    ]),
    'Requests take five times as long as usual, and no limiter throttles the disk.',
    disk + ' was slow for ' + percent + ' of the last ' + config.throttledWindow + '.'
    + also(' A small read usually takes ', 'disksla_usual_latency_seconds{@,direction="read"}', 'humanizeDuration', '.')
    + also(' A small write usually takes ', 'disksla_usual_latency_seconds{@,direction="write"}', 'humanizeDuration', '.')
  ),

  // -- throttling -----------------------------------------------------------------------------

  // Who used most of a disk, by all its programs; empty where it is not known.
  local greatest(unit) =
    '{{ range ' + text.result(
      'topk by (device) (1, sum without (program) (rate(disksla_consumer_%s_total{@}[%s])))'
      % [unit, config.throttledWindow]
    ) + ' }} Most ' + unit + ': {{ .Labels.consumer }}.{{ end }}',

  // Whose limit it was, and for which share of a window.
  local whose(window) =
    '{{ range ' + text.result('rate(disksla_throttled_seconds_total{@}[' + window + ']) > 0')
    + ' | sortByLabel "limit" }} {{ .Labels.limit | reReplaceAll "^machine_" "The machine: "'
    + ' | reReplaceAll "^([ib])" "You: $1" | reReplaceAll "^unknown" "Unknown limit:" }}'
    + ' {{ . | value | humanizePercentage }}.{{ end }}',
  local waited = |||
    rate(disksla_throttle_wait_seconds_total{@}[%(window)s]) / (rate(disksla_reads_completed_total{@}[%(window)s]) + rate(disksla_writes_completed_total{@}[%(window)s])) > 0
  ||| % { window: config.throttledWindow },

  // A share of all time, not of the assessed time: after a start, the first minutes do not count as
  // the whole window. Time at a limit of the machine has its own alert: a larger disk does not help.
  local throttled_share(window) = 'sum without (limit) (rate(%s[%s]))' % [
    of('disksla_throttled_seconds_total', promql.by_others),
    window,
  ],
  // The sentence of `disksla explain`, in numbers.
  local throttled = disk_alert(
    'DiskThrottled',
    'warning',
    config.throttledFor,
    of_disk('%s > %g' % [throttled_share(config.throttledWindow), config.throttledShare], more=['budget']),
    'A disk is throttled much of the time.',
    disk + ' was throttled for ' + percent + ' of the last ' + config.throttledWindow + '.'
    + whose(config.throttledWindow)
    + also(' Requests waited ', trimmed(waited), 'humanizeDuration', ' each.')
    + text.bought
    + also(' Served: ', 'disksla_observed_ceiling_iops', 'humanize', ' IOPS.')
    + also(' Served: ', 'disksla_observed_ceiling_bytes_per_second', 'humanize1024', 'B/s.')
    + greatest('requests') + greatest('bytes')
  ),

  // Ahead of the alert above, which takes over where requests already wait. With burst credits, the
  // load is that of the baseline, and the credits have alerts of their own.
  local near = disk_alert(
    'DiskNearLimit',
    'info',
    config.nearFor,
    of_disk(|||
      1 - sum without (le) (rate(%(low)s[%(window)s]))
        / (sum without (le) (rate(%(all)s[%(window)s])) > 0) > %(share)g
      unless
      %(throttled)s > %(most)g
      unless
      %(lately)s > %(most)g
      unless on (%(disk)s)
      %(credits)s
    ||| % {
      disk: promql.disk,
      credits: of('disksla_burst_credits_capacity'),
      low: of('disksla_window_load_ratio_bucket', 'le="%s"' % config.nearLoadRatio),
      all: of('disksla_window_load_ratio_bucket', 'le="+Inf"'),
      window: config.nearWindow,
      share: config.nearShare,
      throttled: throttled_share(config.throttledWindow),
      lately: throttled_share(config.nearFor),
      most: config.throttledShare,
    }),
    'The load of a disk is close to its limit most of the time.',
    disk + ' had a load above %g %% of its limit for ' % (100 * std.parseJson(config.nearLoadRatio))
    + percent + ' of the last ' + config.nearWindow + '. It is not throttled much yet.'
    + greatest('requests') + greatest('bytes')
  ),

  local unexplained = disk_alert(
    'DiskLimitNotExplained',
    'warning',
    config.unexplainedFor,
    of_disk(|||
      sum without (limit) (rate(%(unknown)s[%(window)s])) > %(share)g
    ||| % {
      unknown: of('disksla_throttled_seconds_total', 'limit="unknown"'),
      window: config.throttledWindow,
      share: config.unexplainedShare,
    }, promql.with_limits),
    'A disk is throttled at a rate that its terms do not explain.',
    disk + ' was throttled for ' + percent + ' of the last ' + config.throttledWindow
    + ' by a limiter whose rate is not a limit of its terms: its promise is not tested.'
    + also(' Observed ceiling: ', 'disksla_observed_ceiling_iops', 'humanize', ' IOPS.')
    + ' Check its type and size, and the machine type.'
  ),

  local symptom_of(metric, symptom, most) = |||
    label_replace(
      %s > %g,
      "symptom", "%s", "", ""
    )
  ||| % [metric, most, symptom],
  local throttling_impact = disk_alert(
    'DiskThrottlingHurtsHost',
    'warning',
    config.throttlingImpactFor,
    of_disk(
      symptom_of(
        'sum without (kind) (rate(%s[%s]))'
        % [of('disksla_throttled_pressure_seconds_total', 'kind="some"'), config.throttlingImpactWindow],
        'pressure',
        config.throttlingImpactPressureShare
      )
      + 'or\n'
      + symptom_of(
        'rate(%s[%s])' % [of('disksla_throttled_iowait_seconds_total'), config.throttlingImpactWindow],
        'iowait',
        config.throttlingImpactIowaitCpus
      )
    ),
    'Programs of a host wait for I/O because a disk is throttled.',
    disk + ' is throttled, and'
    + ' {{ if eq $labels.symptom "pressure" }}tasks of the host were stalled for I/O for '
    + percent + ' of{{ else }}{{ $value | humanize }} CPUs were in iowait over{{ end }}'
    + ' the last ' + config.throttlingImpactWindow + '.'
    + whose(config.throttlingImpactWindow) + greatest('requests')
  ),

  // -- credits --------------------------------------------------------------------------------

  local left = promql.credits_left('burst'),
  local exhausted = disk_alert(
    'DiskBurstCreditsExhausted',
    'warning',
    config.creditsEmptyFor,
    of_disk('%s < %g' % [left('upper'), config.creditsEmptyShare]),
    'A disk has used up its burst credits.',
    disk + ' has at most ' + percent + ' of its burst credits ({{ $labels.resource }}) left.'
    + ' It is limited to its baseline.'
    + also(' Baseline of reads: ', 'disksla_limit_read_iops', 'humanize', '/s.')
    + also(' Baseline of writes: ', 'disksla_limit_write_iops', 'humanize', '/s.')
  ),
  local soon = disk_alert(
    'DiskBurstCreditsExhaustSoon',
    'info',
    config.creditsSoonFor,
    of_disk(|||
      (
      %(end)s
      )
      and
      %(lower)s < %(low)g
      unless
      %(upper)s < %(empty)g
    ||| % {
      end: text.indented(promql.credits_end('burst')),
      lower: left('lower'),
      low: config.creditsLowShare,
      upper: left('upper'),
      empty: config.creditsEmptyShare,
    }),
    'A disk will use up its burst credits within hours.',
    disk + ' will use up its burst credits ({{ $labels.resource }}) in ' + duration
    + ' at this rate. It may have less than %g %% of them left.' % (100 * config.creditsLowShare)
    + greatest('requests') + greatest('bytes')
  ),

  // -- stalls, probes, verification, configuration --------------------------------------------

  local stalled = disk_alert(
    'DiskStalled',
    'critical',
    config.stalledFor,
    of_disk('sum without (verdict) (increase(%s[%s])) > %d' % [
      of('disksla_verdict_seconds_total', 'verdict="stalled"'),
      window,
      config.stalledSeconds,
    ]),
    'A disk does not complete requests.',
    disk + ' had requests in flight and completed none for ' + duration
    + ' of the last ' + window + '.'
    + also(' In flight now: ', 'disksla_inflight', 'humanize', '.')
  ),

  local probe_failing = disk_alert(
    'DiskProbeFailing',
    'warning',
    config.probeFailingFor,
    of_disk('%s == 0' % recent('disksla_probe_success')),
    'Probes of a disk fail.',
    disk + ': the last {{ $labels.kind }} probes failed. The latency of single requests is not known.'
  ),
  // Probes that were skipped for a temporary reason, such as a busy disk, count as attempts.
  local probe_stale = disk_alert(
    'DiskProbeStale',
    'warning',
    config.probeStaleFor,
    of_disk(|||
      time() - %(attempt)s > %(intervals)g * %(interval)s + %(slack)d
      or
      (time() - %(attempt)s unless %(interval)s) > %(cron)d
    ||| % {
      attempt: recent('disksla_probe_last_attempt_timestamp_seconds'),
      intervals: config.probeStaleIntervals,
      interval: recent('disksla_probe_interval_seconds'),
      slack: config.probeStaleSlackSeconds,
      cron: config.probeStaleCronSeconds,
    }),
    'A disk is no longer probed.',
    disk + ' was not probed ({{ $labels.kind }}) for ' + duration + ', nor skipped for a temporary reason.'
  ),
  local verification = disk_alert(
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
      ratio: recent('disksla_verification_ratio'),
      required: recent('disksla_verification_required_ratio'),
      passed: recent('disksla_verification_passed'),
      at: recent('disksla_verification_timestamp_seconds'),
      news: config.verificationSeconds,
    }),
    'A disk failed its acceptance test.',
    disk + ' reached ' + percent + ' of the required result in the test {{ $labels.test }}.'
  ),
  local terms_unknown = disk_alert(
    'DiskTermsUnknown',
    'info',
    config.termsUnknownFor,
    promql.info + '{' + promql.without_limits + '} == 1\n',
    'The terms of a disk are not known.',
    disk + ' has no limits to compare with. Add its terms to the configuration of disksla.'
  ),

  local terms_old = alert(
    'host',
    'DiskSlaTermsOutOfDate',
    'warning',
    config.termsOldFor,
    'time() - %s > 0\n' % recent('disksla_terms_expiry_timestamp_seconds'),
    'The terms of disks were not refreshed.',
    'The terms on {{ $labels.instance }} (source: {{ $labels.source }}) are ' + duration
    + ' older than they may be. They stay in force, but may have changed.'
  ),

  // -- the daemon -----------------------------------------------------------------------------

  local down = alert(
    'host',
    'DiskSlaExporterDown',
    'warning',
    config.exporterDownFor,
    'up{%s} == 0\n' % config.diskslaSelector,
    'The disksla daemon of a host cannot be scraped.',
    'Prometheus cannot scrape disksla at {{ $labels.instance }}. There is no data about its disks.',
    // The runbook of another daemon, since this one may not answer.
    link_to='{{ with printf `up{%s} == 1` | query }}{{ sortByLabel "instance" . | first | label "instance" }}{{ else }}'
            % config.diskslaSelector + '{{ $labels.instance }}{{ end }}'
  ),
  local late = alert(
    'host',
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
    'The disksla daemon samples less often than configured.',
    'disksla at {{ $labels.instance }} missed ' + percent
    + ' of its samples. Its windows are longer, and short bursts are averaged out.'
  ),
  local failed = alert(
    'host',
    'DiskSlaSamplerFailed',
    'warning',
    config.samplerFailedFor,
    'increase(%s[%s]) > 0\n' % [of('disksla_errors_total', 'source="sampler"'), window],
    'The disksla daemon fails to sample by a bug.',
    'disksla at {{ $labels.instance }} failed at {{ $value | printf "%.0f" }} ticks of the last '
    + window + '. What its disks did then may be missing. Its log has the reason.'
  ),

  prometheusAlerts+:: {
    groups+: [
      { name: 'disksla.promise', interval: config.ruleInterval, rules: [below] },
      {
        name: 'disksla.promise.slow',
        interval: config.longRuleInterval,
        rules: [latency, verification],
      },
      { name: 'disksla.limit', interval: config.slowRuleInterval, rules: [
        throttled,
        near,
        unexplained,
        slow,
        throttling_impact,
        exhausted,
        soon,
        machine.limit,
        machine.credits,
      ] },
      { name: 'disksla.stalled', interval: config.ruleInterval, rules: [stalled] },
      {
        name: 'disksla.measure.probes',
        interval: config.longRuleInterval,
        rules: [probe_failing, probe_stale, terms_unknown, terms_old],
      },
      { name: 'disksla.exporter', interval: config.ruleInterval, rules: [down, late, failed] },
    ],
  },
}
