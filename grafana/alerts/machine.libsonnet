// Alerts on groups of disks that share a limit of their machine.
function(config) {
  local promql = (import '../promql.libsonnet')(config),
  local text = (import 'text.libsonnet')(config),
  local of = promql.of,

  // Add the labels that describe the group.
  local of_group(expr) =
    '(\n' + text.indented(expr) + '\n)\n* on (' + promql.group
    + ') group_left (machine, title, budget) (\n' + text.indented(promql.machine_info) + '\n)',

  local group = 'On {{ $labels.instance }}{{ with $labels.machine }} ({{ . }}){{ end }},'
                + ' {{ $labels.title }} ',
  local devices =
    ' Disks: ' + text.list(
      promql.info + ' and on (' + promql.disk + ') disksla_machine_disk_info{@}',
      'device',
      '{{ .Labels.device }}{{ with .Labels.persistentvolumeclaim }} (claim {{ $each.Labels.namespace }}/{{ . }}){{ end }}'
    ) + '.',
  // Of reads or of writes, whichever is higher. Where they share a limit, it is published for both.
  local limits =
    text.also(' Limit: ', 'max without (direction) (disksla_machine_limit_iops{@})', 'humanize', ' IOPS.')
    + text.also(
      ' Limit: ',
      'max without (direction) (disksla_machine_limit_bytes_per_second{@})',
      'humanize1024',
      'B/s.'
    ),

  // For the alert of hosts without a daemon.
  of_group:: of_group,
  group:: group,
  limits:: limits,

  local throttled = 'disksla_machine_throttled_seconds_total',
  local share(metric) = 'rate(' + metric + '[' + config.machineLimitWindow + '])',
  limit: text.alert(
    'machine',
    'MachineLimitReached',
    'warning',
    config.machineLimitFor,
    of_group('sum without (limit) (%s) > %g' % [share(of(throttled)), config.machineLimitShare]),
    'The disks of a machine are throttled together, at a limit of the machine.',
    group + 'were at the limit of the machine for ' + text.percent + ' of the last '
    + config.machineLimitWindow + '.'
    + ' By limit: ' + text.list(
      share(throttled + '{@}') + ' > 0',
      'limit',
      '{{ .Labels.limit }} {{ . | value | humanizePercentage }}'
    ) + '.'
    + devices
    + limits
    + ' A larger disk does not help.'
  ),

  local left = promql.credits_left('machine_burst'),
  credits: text.alert(
    'machine',
    'MachineBurstCreditsLow',
    'info',
    config.machineCreditsFor,
    of_group(|||
      %(upper)s
      and (
        (
      %(end)s
        )
        and
        %(lower)s < %(low)g
        or
        %(upper)s < %(empty)g
      )
    ||| % {
      upper: left('upper'),
      end: text.indented(text.indented(promql.credits_end('machine_burst'))),
      lower: left('lower'),
      low: config.creditsLowShare,
      empty: config.creditsEmptyShare,
    }),
    'The burst credits of a machine for its disks are used up, or will be within hours.',
    group + 'have at most ' + text.percent
    + ' of the burst credits of the machine ({{ $labels.resource }}) left.'
    + text.also(
      ' At the present rate they are used up in ',
      'disksla_machine_burst_exhaustion_seconds{@, resource=#} < Inf',
      'humanizeDuration',
      '.'
    )
    + devices
    + limits
  ),
}
