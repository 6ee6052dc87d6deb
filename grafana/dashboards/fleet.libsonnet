// All disks, worst first, on recorded series, so that ten thousand of them stay cheap to look at.
{
  grafanaDashboards+:: {
    'fleet.json':
      local config = $._config;
      local lib = (import 'lib.libsonnet')(config);
      local promql = lib.promql;
      local disk = lib.disk;
      // Of each disk, what is said of it; behind the point, for how much of the time.
      local said = promql.state + '{' + disk + '}';
      local share(verdict) = promql.verdict_share('instance_device_verdict')
                             + '{' + disk + ', verdict="' + verdict + '"}';
      local info = promql.info + '{' + disk + '}';
      local compliance(level, window, matchers) =
        promql.compliance(level, window) + '{' + matchers + '}';

      local promise = '(%s)' % std.join(' or ', [
        'disksla_limit_' + limit + '{' + disk + '}'
        for limit in [
          'read_iops',
          'write_iops',
          'read_bytes_per_second',
          'written_bytes_per_second',
        ]
      ]);

      local disks(title, description, expr) =
        lib.stat(title, description, 'short', [lib.counted(expr, said)])
        + lib.size(4, 5) + lib.onColour + lib.noData('no disk is watched');

      local worst = 'topk(%d, %s)' % [config.dashboardWorst, said];
      local ofWorst(expr, details=[]) = lib.column(
        'max by (' + std.join(', ', [lib.perDisk] + details) + ') ('
        + expr + ' and on (' + lib.perDisk + ') ' + worst + ')'
      );
      local details = ['terms', 'mountpoint', 'model', 'serial'];

      // Recorded over all hosts, so that no host can be picked out.
      local shareOfTerms = promql.verdict_share('provider_terms_verdict');
      local byTerms(name, more='') = name + '{job=~"$job"' + more + '}';
      local disksOfTerms = byTerms('provider_terms:disksla_disks:count');
      local termsRate(counter) = lib.query(
        'sum by (provider, terms) ('
        + byTerms(promql.rate('provider_terms', 'disksla_' + counter)) + ')',
        '{{terms}}'
      );
      local traffic(title, unit, counter) =
        lib.lines(title, |||
          Of all disks sold under the same terms, on all hosts, on top of each other.
        |||, unit, [termsRate(counter)])
        + lib.stacked + lib.size(6, 7) + lib.noData('nothing recorded');

      local up = 'up{%s}' % lib.host;
      local reloaded = 'disksla_config_last_reload_successful{%s}' % lib.host;
      local ticks(kind) =
        'rate(disksla_sampler_' + kind + '_total{' + lib.host + '}[$__rate_interval])';

      local about = 'All disks, worst first: which of them are to blame, and which are too small.';
      lib.dashboard(lib.uids.fleet, 'disksla / Fleet', about, [
        [
          disks('Give less than promised', |||
            Disks that gave less than their terms promise for a noticeable share of the last
            minutes: it is the disk. Attach what the disk's dashboard shows to a ticket to the
            provider.
          |||, 'floor(%s) == 5' % said)
          + lib.alarming('red'),
          disks('Stalled', |||
            Disks at which requests waited and nothing completed: it is the disk, or the path to
            it.
          |||, 'floor(%s) == 6' % said)
          + lib.alarming('dark-red'),
          disks('Out of credits', |||
            Disks that are held while their burst credits are used up: it is the load, more than
            the disk was sold for in the long run.
          |||, 'floor(%s) == 4' % said)
          + lib.alarming('purple'),
          disks('Held at their limit', |||
            Disks that are held at a limit while requests wait: it is the load. They give what was
            sold (or a flat rate, where no terms are known), and the load wants more.
          |||, '(%s >= 2) < 4' % said)
          + lib.alarming('orange'),
          disks('Fine', |||
            Disks that gave all that was asked of them: look for the cause elsewhere.
          |||, '%s < 2' % said),
          disks('Nothing promised', |||
            Disks whose terms promise nothing, or are not known: they can be seen to be held, but
            not to fall short. Name their terms in the configuration.
          |||, '%s unless on (%s) %s' % [info, lib.perDisk, promise])
          + lib.alarming('blue'),
        ],
        [
          lib.table(
            'Worst first',
            |||
              The %d worst disks of the last minutes: what falls short before what is only held. A
              click on a disk leads to its story.
            ||| % config.dashboardWorst,
            ['instance', 'device'],
            ['state', 'less than promised', 'held', 'stalled', 'credits left', 'kept, 30 d'],
            [
              ofWorst(said),
              ofWorst(share('below')),
              ofWorst(share('throttled')),
              ofWorst(share('stalled')),
              ofWorst('min by (%s) (%s)' % [lib.perDisk, lib.creditsLeft()]),
              ofWorst(compliance('instance_device', '30d', disk)),
              ofWorst(info, details),
            ],
            details=details
          )
          + lib.size(24, 12) + lib.noData('no disk is watched') + lib.rowToDisk()
          + lib.sortedBy('state', desc=true) + lib.unit('percentunit') + lib.decimals(1)
          + lib.overrides([
            lib.named('state', {
              mappings: lib.stateRanges,
              'custom.cellOptions': { type: 'color-text' },
              'custom.width': 280,
            }),
            lib.named('kept, 30 d', { decimals: 3 }),
          ]),
        ],

        [
          lib.lines('Disks by state', |||
            How many disks there were of each state. Many that turn red at the same moment are an
            incident of the provider; many that turn orange are your own load.
          |||, 'short', [lib.query('count_values("state", floor(%s))' % said, '{{state}}')])
          + lib.stacked + lib.byState + lib.size(24, 7)
          + lib.noData('nothing recorded: are the recording rules loaded?'),
        ],

        lib.row('By terms, on all hosts'),
        [
          lib.table(
            'The promise by terms',
            |||
              How well each kind of disk keeps what it was sold for: of the time in which it was
              put to the proof, the share in which it gave no less than promised. Empty where
              nothing was put to the proof.
            |||,
            ['provider', 'terms'],
            ['disks', 'less than promised', 'held', 'kept, 1 h', 'kept, 1 d', 'kept, 30 d'],
            [
              lib.column('sum by (provider, terms) (%s)' % disksOfTerms),
            ] + [
              lib.column('max by (provider, terms) (%s)'
                         % byTerms(shareOfTerms, ', verdict="%s"' % verdict))
              for verdict in ['below', 'throttled']
            ]
            + [
              lib.column('min by (provider, terms) (%s)'
                         % compliance('provider_terms', window, 'job=~"$job"'))
              for window in ['1h', '1d', '30d']
            ]
          )
          + lib.size(14, 9) + lib.noData('nothing recorded: are the recording rules loaded?')
          + lib.sortedBy('kept, 30 d') + lib.unit('percentunit') + lib.decimals(2)
          + lib.overrides([lib.named('disks', { unit: 'short', decimals: 0 })]),
          lib.lines('Time of all disks, by verdict', |||
            What was said of all disks under these jobs, as shares of their time. Red that grows:
            many disks fall short at once, as in an incident of the provider.
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
          + lib.stacked + lib.byVerdict + lib.range(0, 1) + lib.size(10, 9)
          + lib.noData('nothing recorded: are the recording rules loaded?'),
        ],
        [
          traffic('Reads', 'iops', 'reads_completed'),
          traffic('Writes', 'iops', 'writes_completed'),
          traffic('Bandwidth of reads', 'Bps', 'read_bytes'),
          traffic('Bandwidth of writes', 'Bps', 'written_bytes'),
        ],

        lib.row('The exporters'),
        [
          lib.stat('Exporters down', |||
            Daemons that could not be scraped at last: their disks are not in the numbers above.
          |||, 'short', [lib.counted(up + ' == 0', up)])
          + lib.alarming('red') + lib.size(6, 6) + lib.noData('no exporter is scraped'),
          lib.stat('Configuration refused', |||
            Daemons that run on an old configuration because the new one was refused; `disksla
            check-config` says why.
          |||, 'short', [lib.counted(reloaded + ' == 0', reloaded)])
          + lib.alarming('orange') + lib.size(6, 6) + lib.noData('no exporter is scraped'),
          lib.lines('Samples missed', |||
            Share of the sampling deadlines that passed without a sample, of the daemon that missed
            most. Nothing is lost of the counters, but windows grow longer and verdicts coarser.
          |||, 'percentunit', [
            lib.query('max(%(missed)s / (%(missed)s + %(taken)s))' % {
              missed: ticks('missed_ticks'),
              taken: ticks('ticks'),
            }, 'worst daemon'),
          ])
          + lib.size(6, 6) + lib.noData('no exporter is scraped'),
          lib.bars('Versions', |||
            Daemons by version of disksla.
          |||, 'short', [
            lib.now('count by (version) (disksla_build_info{%s})' % lib.host, '{{version}}'),
          ])
          + lib.size(6, 6) + lib.noData('no exporter is scraped'),
        ],
      ]),
  },
}
