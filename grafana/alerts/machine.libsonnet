// Alerts on groups of disks that share a limit of their machine.
function(config) {
  local promql = (import '../promql.libsonnet')(config),
  local text = (import 'text.libsonnet')(config),
  local of = promql.of,
  local labels = config.hostLabels + ['group'],
  local ofResource = labels + ['resource'],

  // Add the labels that describe the group.
  local of_group(expr) =
    '(\n' + text.indented(expr) + '\n)\n* on (' + promql.group
    + ') group_left (machine, title, budget)\n' + promql.machine_info,

  local group = 'On {{ $labels.instance }}{{ with $labels.machine }} ({{ . }}){{ end }},'
                + ' {{ $labels.title }} ',
  local devices =
    ' Disks: '
    + text.list('disksla_machine_disk_info{@}', labels, 'device', '{{ .Labels.device }}') + '.',
  // Where reads and writes share a limit, it is published for both.
  local baseline = std.join('', [
    '{{ range ' + text.result(each[0] + '{@}', labels) + ' | sortByLabel "direction" }}'
    + '{{ if ne $labels.budget "sum" }} Baseline of {{ .Labels.direction }}s: ' + each[1]
    + '{{ else if eq .Labels.direction "read" }} Baseline: ' + each[1]
    + '{{ end }}{{ end }}'
    for each in [
      ['disksla_machine_limit_iops', '{{ . | value | humanize }} IOPS.'],
      ['disksla_machine_limit_bytes_per_second', '{{ . | value | humanize1024 }}B/s.'],
    ]
  ]),

  local throttled = 'disksla_machine_throttled_seconds_total',
  local share(metric) = 'rate(' + metric + '[' + config.machineLimitWindow + '])',
  limit: text.alert(
    'MachineLimitReached',
    'warning',
    config.machineLimitFor,
    of_group('sum without (limit) (%s) > %g' % [share(of(throttled)), config.machineLimitShare]),
    'The disks of a machine are throttled together, at a limit of the machine.',
    group + 'were at the limit of the machine for ' + text.percent + ' of the last '
    + config.machineLimitWindow + ' ('
    + text.list(
      share(throttled + '{@}') + ' > 0',
      labels,
      'limit',
      '{{ .Labels.limit }}: {{ . | value | humanizePercentage }}'
    ) + ').'
    + devices
    + baseline
    + ' A larger disk does not help: use a larger machine, or reduce the load.'
  ),

  local left(bound) =
    'disksla_machine_burst_credits_' + bound + '_bound{@} / '
    + 'disksla_machine_burst_credits_capacity{@}',
  local left_of(bound) = std.strReplace(left(bound), '@', config.diskslaSelector),
  credits: text.alert(
    'MachineBurstCreditsLow',
    'info',
    config.machineCreditsFor,
    of_group(|||
      %(upper)s
      and (
        max_over_time(%(exhaustion)s[%(window)s]) < %(soon)d
        and
        %(lower)s < %(low)g
        or
        %(upper)s < %(empty)g
      )
    ||| % {
      upper: left_of('upper'),
      exhaustion: of('disksla_machine_burst_exhaustion_seconds'),
      window: config.creditsSoonWindow,
      soon: config.creditsSoonSeconds,
      lower: left_of('lower'),
      low: config.creditsLowShare,
      empty: config.creditsEmptyShare,
    }),
    'The burst credits of a machine for its disks are used up, or will be soon.',
    group + 'have'
    + text.also(' at least ', left('lower'), 'humanizePercentage', ' and', ofResource)
    + ' at most ' + text.percent + ' of the burst credits of the machine ({{ $labels.resource }}) left.'
    + text.also(
      ' At the present rate they are used up in ',
      'disksla_machine_burst_exhaustion_seconds{@} < Inf',
      'humanizeDuration',
      '.',
      ofResource
    )
    + ' Without credits, the machine limits them to its baseline.'
    + devices
    + baseline
  ),
}
