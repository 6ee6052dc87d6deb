// Rows of panels on the limits of a machine: of one disk, and of all machines.
function(config) {
  local lib = (import 'lib.libsonnet')(config),
  local promql = lib.promql,
  local perGroup = promql.group,
  local gauge(metric, more='') = 'disksla_machine_' + metric + '{' + lib.host + more + '}',
  local rate(metric, more='') = 'rate(' + gauge(metric, more) + '[$__rate_interval])',
  local noLimit = lib.noData('no limit of the machine over this disk is known'),

  // Series of the groups that the selected disk is in: one, or two where the host has a cache.
  local ofGroup(expr) =
    expr + ' and on (' + perGroup + ') disksla_machine_disk_info{' + lib.disk + '}',
  local left(bound='') = 'min by (resource) (%s)' % ofGroup(
    gauge('burst_credits' + bound) + ' / ' + gauge('burst_credits_capacity')
  ),
  // Rates of all disks of the group, stacked, and the limit of their sum.
  local traffic(title, unit, metrics, limit) =
    lib.lines(title, |||
      Filled: reads plus writes of each disk that shares the limit, stacked; the widest area is the
      disk that uses most of it. Dashed: limits of the machine, and those of a burst; where reads and
      writes share one limit, it is shown for both.
    |||, unit, [
      lib.query('(%s) and on (%s) (%s)' % [
        std.join(' + ', [
          'rate(disksla_' + metric + '{' + lib.host + '}[$__rate_interval])'
          for metric in metrics
        ]),
        lib.perDisk,
        ofGroup(gauge('disk_info')),
      ], '{{device}}'),
      lib.query(ofGroup(gauge(limit)), 'limit of {{direction}}s ({{group}})'),
      lib.query(ofGroup(gauge('burst_' + limit)), 'burst limit of {{direction}}s ({{group}})'),
    ])
    + lib.stacked + noLimit + lib.overrides([
      lib.override('byRegexp', '/limit of /', {
        color: { mode: 'fixed', fixedColor: 'green' },
        'custom.fillOpacity': 0,
        'custom.lineWidth': 1,
        'custom.lineStyle': { fill: 'dash', dash: [8, 4] },
        'custom.stacking': { mode: 'none', group: 'B' },
      }),
    ]),

  // Rows of the dashboard of one disk.
  ofDisk: [lib.collapsed('Machine', [
    [
      lib.text('Disks that share the limit', |||
        The disks that share a limit of the machine, this one among them. A larger disk does not raise
        that limit; a larger machine does.
      |||, ofGroup(gauge('info')), 'title')
      + lib.size(8, 8) + noLimit,
      lib.lines('Load of the machine limit', |||
        Mean load of all these disks together, as a share of the limit of the machine, and the share
        of windows of 100 ms near the limit. Near 100 % while the load of this disk is far below it: the machine is too small,
        not the disk.
      |||, 'percentunit', [
        lib.query(
          '(%s) / (%s > 0)' % [ofGroup(rate('load_ratio_sum')), ofGroup(rate('load_ratio_count'))],
          '{{group}}: mean load'
        ),
        lib.query(
          '1 - sum without (le) (%s) / (%s > 0)'
          % [ofGroup(rate('load_ratio_bucket', ', le="0.95"')), ofGroup(rate('load_ratio_count'))],
          '{{group}}: windows above 95 %'
        ),
      ])
      + lib.lineAt(1, 'orange') + lib.size(8, 8)
      + lib.noData('no limit of the machine is known, or %s' % lib.lean),
      lib.lines('Time at the machine limit', |||
        Share of the time in which requests of these disks waited for a limit of the machine.
      |||, 'percentunit', [
        lib.query(
          'max by (limit) (%s)' % ofGroup(rate('throttled_seconds_total')), 'machine_{{limit}}'
        ),
      ])
      + lib.stacked + lib.range(0, 1) + lib.byLimit + lib.size(8, 8) + noLimit,
    ],
    [
      traffic('IOPS of these disks', 'iops', ['reads_completed_total', 'writes_completed_total'], 'limit_iops'),
      traffic('Throughput of these disks', 'binBps', ['read_bytes_total', 'written_bytes_total'], 'limit_bytes_per_second'),
    ],
    [
      lib.bounds('Burst credits of the machine', |||
        Burst credits that the machine has for these disks, as a share of the capacity. The true
        level is always within the band, and the line is the estimate. At 0 the disks are limited to
        the baseline of the machine, whatever credits they have of their own.
      |||, left)
      + lib.noData('no burst credits of the machine are known'),
      lib.lines('Time until the credits of the machine are used up', |||
        Estimated time until the burst credits of the machine are used up, at the rate of the last
        second. Absent while the credits do not decrease.
      |||, 's', [
        lib.query(
          ofGroup(gauge('burst_exhaustion_seconds') + ' < Inf'), '{{group}}: {{resource}}'
        ),
      ])
      + lib.size(8, 8) + lib.noData('the credits do not decrease'),
    ],
  ])],

  local groups = 'sum by (' + perGroup + ') (' + rate('throttled_seconds_total') + ')',
  local atLimit = groups + ' > %g' % config.noticeableShare,
  local worst = 'topk(%d, %s)' % [config.dashboardWorst, atLimit],
  local ofWorst(expr, details=[]) = lib.column(
    'max by (' + std.join(', ', [perGroup] + details) + ') ('
    + expr + ' and on (' + perGroup + ') ' + worst + ')'
  ),
  local details = ['machine', 'title'],

  // Rows of the dashboard of all disks. They read a dozen series of each machine.
  ofFleet: [
    lib.row('Machines'),
    [
      lib.table(
        'Machines at their limit',
        |||
          The %d machines whose disks wait most of the time for a limit of the machine over several
          disks together; empty if none does. A larger disk does not help; a larger machine does.
        ||| % config.dashboardWorst,
        ['instance', 'group'],
        ['at the limit', 'of IOPS', 'of bandwidth', 'credits left', 'disks'],
        [
          ofWorst(groups),
          ofWorst(rate('throttled_seconds_total', ', limit="iops"')),
          ofWorst(rate('throttled_seconds_total', ', limit="bandwidth"')),
          ofWorst('min by (%s) (%s / %s)' % [
            perGroup,
            gauge('burst_credits'),
            gauge('burst_credits_capacity'),
          ]),
          ofWorst('count by (%s) (%s)' % [perGroup, gauge('disk_info')]),
          ofWorst(gauge('info'), details),
        ],
        details=details,
        order=['instance', 'at the limit', 'of IOPS', 'of bandwidth', 'credits left', 'group']
              + ['machine', 'title', 'disks']
      )
      + lib.size(24, 8)
      + lib.sortedBy('at the limit', desc=true) + lib.unit('percentunit') + lib.decimals(1)
      + lib.overrides([lib.named('disks', { unit: 'short', decimals: 0 })]),
    ],
    [
      lib.lines('Number of machines at their limit', |||
        Machines whose disks waited for a limit of the machine for at least %g %% of the rate
        interval.
      ||| % (config.noticeableShare * 100), 'short', [
        lib.query(
          'count(' + atLimit + ') or 0 * count(' + gauge('info') + ')', 'machines at their limit'
        ),
      ])
      + lib.coloured({ 'machines at their limit': 'dark-orange' })
      + lib.size(24, 6) + lib.noData('no limits of machines are known'),
    ],
  ],
}
