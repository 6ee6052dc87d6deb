// Dashboard of all disks, worst first: one recorded series of each disk selects the disks that are shown,
// so it is cheap with ten thousand disks too. It needs no more than the profile `lean`.
local state = import '../state.libsonnet';

{
  grafanaDashboards+:: {
    'fleet.json':
      local config = $._config;
      local lib = (import 'lib.libsonnet')(config);
      local machine = (import 'machine.libsonnet')(config);
      local promql = lib.promql;
      local disk = lib.disk;
      // The state of each disk; the fraction is the share of the time.
      local states = promql.state + '{' + disk + ', ' + lib.claim + '}';
      local share(verdict) =
        'rate(disksla_verdict_seconds_total{' + disk + ', verdict="' + verdict + '"}['
        + config.rateWindow + '])';
      local slow = 'sum without (than) (rate(disksla_slow_seconds_total{' + disk + '}['
                   + config.rateWindow + ']))';
      local info = promql.info + '{' + disk + '}';
      local compliance(level, window, matchers) =
        promql.compliance(level, window) + '{' + matchers + '}';
      // That of an hour is not recorded for each disk.
      local seconds_of_hour(metric) =
        promql.over_time(promql.step('instance_device', metric) + '{' + disk + '}', '1h');
      local compliance_of_disk(window) =
        if window == '1h' then
          '(1 - %s / (%s > 0))' % [
            seconds_of_hour('disksla_noncompliant_seconds'),
            seconds_of_hour('disksla_proven_seconds'),
          ]
        else compliance('instance_device', window, disk);

      local worst = 'topk(%d, %s)' % [config.dashboardWorst, states];
      local ofWorst(expr, details=[]) = lib.column(
        'max by (' + std.join(', ', [lib.perDisk] + details) + ') ('
        + expr + ' and on (' + lib.perDisk + ') ' + worst + ')'
      );
      local details = ['terms', 'model', 'serial'];
      // One of the mount points of each disk, so that it has one row.
      local one_of(metric) = 'topk by (%s) (1, disksla_%s{%s})' % [lib.perDisk, metric, disk];
      local mounted = one_of('mount_info');
      local claimed = one_of('kubernetes_volume_info');

      local least = 'bottomk(%d, %s < %g and on (%s) %s)' % [
        config.dashboardWorst,
        compliance_of_disk('1d'),
        config.dashboardCompliance,
        lib.perDisk,
        states,
      ];
      local ofLeast(expr, details=[]) = lib.column(
        'max by (' + std.join(', ', [lib.perDisk] + details) + ') ('
        + expr + ' and on (' + lib.perDisk + ') ' + least + ')'
      );
      local compliant = lib.byValue(
        [[null, 'red'], [0.99, 'orange'], [config.dashboardCompliance, 'green']]
      );

      // Recorded over all hosts, so these series have no `instance`.
      local shareOfTerms = promql.verdict_share('provider_terms_verdict');
      local byTerms(name, more='') = name + '{' + lib.jobs + more + '}';
      local disksOfTerms = byTerms('provider_terms:disksla_disks:count');
      local termsRate(counter) = lib.query(
        'sum by (provider, terms) ('
        + byTerms(promql.rate('provider_terms', 'disksla_' + counter)) + ')',
        '{{terms}}'
      );
      local traffic(title, unit, counter) =
        lib.lines(title, |||
          Sum over all disks with the same terms, on all hosts; stacked.
        |||, unit, [termsRate(counter)])
        + lib.stacked + lib.size(12, 7) + lib.noData('no data: are the recording rules loaded?');

      local up = 'up{%s}' % lib.host;
      local reloaded = 'disksla_config_last_reload_successful{%s}' % lib.host;
      local ticks(kind) =
        'rate(disksla_sampler_' + kind + '_total{' + lib.host + '}[$__rate_interval])';

      local about = 'All disks, worst first: which give less than promised, and which are throttled.';
      lib.dashboard(lib.uids.fleet, 'disksla / Fleet', about, [
        [
          lib.stat('Disks by state', |||
            Number of disks in each state of the last 5 minutes; a state without disks is not shown. Red:
            the cause is the disk, or the path to it. Orange and purple: the load requests more than was
            bought. Dark orange: more than the machine allows; a larger disk does not help. Yellow: a limit
            that the terms do not explain.
          |||, 'short', [
            lib.now('count(floor(%s) == %d)' % [states, each.value], each.text)
            for each in std.reverse(state.states)
          ])
          + lib.coloured({ [each.text]: each.color for each in state.states })
          + { options+: { text: { titleSize: 12, valueSize: 40 } } } + lib.size(24, 5) + lib.noData('no disks: are the recording rules loaded?'),
        ],
        [
          lib.table(
            'Worst disks',
            |||
              The %d worst disks of the last 5 minutes; a disk below its promise is worse than a
              throttled one. Click on a disk to see its dashboard.
            ||| % config.dashboardWorst,
            ['instance', 'device'],
            ['state', 'below', 'throttled', 'slow', 'stalled', '1 d', '30 d', 'credits left'],
            [
              ofWorst(states),
              ofWorst(share('below')),
              ofWorst(share('throttled')),
              ofWorst(slow),
              ofWorst(share('stalled')),
              ofWorst(compliance_of_disk('1d')),
              ofWorst(compliance_of_disk('30d')),
              ofWorst('min by (%s) (%s)' % [lib.perDisk, lib.creditsLeft()]),
              ofWorst(info, details),
              ofWorst(mounted, ['mountpoint']),
              ofWorst(claimed, promql.claim),
            ],
            details=details + ['mountpoint'] + promql.claim,
            order=['device', 'state', 'persistentvolumeclaim', 'namespace', 'mountpoint', 'instance']
                  + ['terms', 'below', 'throttled', 'slow', 'stalled']
                  + ['1 d', '30 d', 'credits left', 'model', 'serial']
          )
          + lib.size(24, 12) + lib.rowToDisk()
          + lib.sortedBy('state', desc=true) + lib.unit('percentunit') + lib.decimals(1)
          + lib.overrides([
            lib.named('state', {
              mappings: lib.stateRanges,
              'custom.cellOptions': { type: 'color-text' },
              'custom.width': 250,
            }),
            lib.named('device', { 'custom.width': 90 }),
          ] + [
            lib.named(window, compliant { decimals: 2 })
            for window in ['1 d', '30 d']
          ]),
        ],
        [
          lib.table(
            'Least compliant disks of the last day',
            |||
              Disks that were below their promise or stalled within the last day, and may be idle now:
              the share of the tested time in which they were neither. Empty if all are compliant.
            |||,
            ['instance', 'device'],
            ['1 h', '1 d', '30 d', 'state'],
            [
              ofLeast(compliance_of_disk(window))
              for window in ['1h', '1d', '30d']
            ] + [ofLeast(states), ofLeast(info, details), ofLeast(mounted, ['mountpoint'])]
            + [ofLeast(claimed, promql.claim)],
            details=details + ['mountpoint'] + promql.claim,
            order=['device', '1 d', '1 h', '30 d', 'persistentvolumeclaim', 'namespace', 'mountpoint']
                  + ['instance', 'state', 'terms', 'model', 'serial']
          )
          + lib.size(24, 8) + lib.rowToDisk() + lib.sortedBy('1 d') + lib.unit('percentunit')
          + lib.overrides([
            lib.named('state', {
              mappings: lib.stateRanges,
              'custom.cellOptions': { type: 'color-text' },
              'custom.width': 250,
            }),
            lib.named('device', { 'custom.width': 90 }),
          ] + [
            lib.named(window, compliant { decimals: 2 })
            for window in ['1 h', '1 d', '30 d']
          ]),
        ],

        [
          lib.lines('History of disks by state', |||
            Number of disks by state. If many turn red at the same moment, the provider has an
            incident; if many turn orange, the cause is your own load.
          |||, 'short', [lib.query('count_values("state", floor(%s))' % states, '{{state}}')])
          + lib.stacked + lib.byState + lib.size(24, 7)
          + lib.noData('no data: are the recording rules loaded?'),
        ],

      ] + machine.ofFleet + [
        lib.row('By terms, on all hosts'),
        [
          lib.table(
            'Compliance by terms',
            |||
              Compliance of all disks with the same terms: the share of the tested time in which
              they were not below their promise. Empty where the promise was not tested.
            |||,
            ['provider', 'terms'],
            ['disks', 'below', 'throttled', '1 h', '1 d', '30 d'],
            [
              lib.column('sum by (provider, terms) (%s)' % disksOfTerms),
            ] + [
              lib.column('max by (provider, terms) (%s)'
                         % byTerms(shareOfTerms, ', verdict="%s"' % verdict))
              for verdict in ['below', 'throttled']
            ]
            + [
              lib.column('min by (provider, terms) (%s)'
                         % compliance('provider_terms', window, lib.jobs))
              for window in ['1h', '1d', '30d']
            ],
            order=['terms', '30 d', '1 d', '1 h', 'disks', 'below', 'throttled', 'provider']
          )
          + lib.size(24, 9)
          + lib.sortedBy('30 d') + lib.unit('percentunit') + lib.decimals(2)
          + lib.overrides([lib.named('disks', { unit: 'short', decimals: 0 })] + [
            lib.named(window, compliant)
            for window in ['1 h', '1 d', '30 d']
          ]),
        ],
        [
          lib.lines('Time of all disks, by verdict', |||
            Verdicts on all disks of the selected jobs, as shares of their time. A growing red area
            means that many disks are below their promise at once, as in an incident of the
            provider.
          |||, 'percentunit', [
            lib.query(|||
              sum by (verdict) (
                %(shares)s * ignoring (verdict) group_left () %(disks)s
              ) / on () group_left () sum(%(disks)s)
            ||| % {
              shares: byTerms(shareOfTerms),
              disks: disksOfTerms,
            }, '{{verdict}}'),
          ])
          + lib.stacked + lib.byVerdict + lib.range(0, 1) + lib.size(24, 8)
          + lib.noData('no data: are the recording rules loaded?'),
        ],
        [
          traffic('Read IOPS', 'iops', 'reads_completed'),
          traffic('Write IOPS', 'iops', 'writes_completed'),
        ],
        [
          traffic('Read throughput', 'binBps', 'read_bytes'),
          traffic('Write throughput', 'binBps', 'written_bytes'),
        ],

        lib.row('Exporters and terms'),
        [
          lib.stat('Without limits', |||
            Disks whose terms are not known, or have no limits. disksla can detect that they are
            throttled, but not that they are below their promise. Add their terms to the
            configuration.
          |||, 'short', [
            lib.now('count(' + promql.info + '{' + disk + ', ' + lib.claim + ', ' + promql.without_limits + '})'),
          ])
          + lib.alarming('blue') + lib.size(4, 6) + lib.noData('all disks have limits'),
          lib.stat('Exporters down', |||
            Daemons whose last scrape failed. Their disks are not in the numbers above.
          |||, 'short', [lib.counted(up + ' == 0', up)])
          + lib.alarming('red') + lib.size(4, 6) + lib.noData('no exporter is scraped'),
          lib.stat('Failed reloads', |||
            Daemons that keep the old configuration because the new one is invalid. `disksla
            check-config` lists the problems.
          |||, 'short', [lib.counted(reloaded + ' == 0', reloaded)])
          + lib.alarming('orange') + lib.size(4, 6) + lib.noData('no exporter is scraped'),
          lib.lines('Missed samples', |||
            Share of the sampling deadlines that passed without a sample, for the daemon that missed
            most. Counters lose nothing, but windows are longer and verdicts coarser.
          |||, 'percentunit', [
            lib.query('max(%(missed)s / (%(missed)s + %(taken)s))' % {
              missed: ticks('missed_ticks'),
              taken: ticks('ticks'),
            }, 'worst daemon'),
          ])
          + lib.size(6, 6) + lib.noData('no exporter is scraped'),
          lib.bars('Versions', |||
            Number of daemons by version of disksla, and the commit that was built.
          |||, 'short', '${__field.labels.version} ${__field.labels.revision}', [
            lib.now(
              'count by (version, revision) (disksla_build_info{%s})' % lib.host, '{{version}} {{revision}}'
            ),
          ])
          + lib.size(6, 6) + lib.noData('no exporter is scraped'),
        ],
      ]),
  },
}
