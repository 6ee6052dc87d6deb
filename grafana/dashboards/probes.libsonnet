// What was measured on purpose: probes of the daemon, and acceptance tests that a person ran.
{
  grafanaDashboards+:: {
    'probes.json':
      local lib = (import 'lib.libsonnet')($._config);
      local gauge(metric, more='') = 'disksla_' + metric + '{' + lib.disk + more + '}';
      local rate(metric) = 'rate(' + gauge(metric) + '[$__rate_interval])';
      // A probe runs every ten minutes or so: shorter steps would be empty.
      local seldom = { interval: '15m' };
      local increase(metric, by) =
        'sum by (' + by + ') (increase(' + gauge(metric) + '[$__rate_interval]))';
      local buckets(kind) = 'probe_' + kind + '_latency_seconds_bucket';
      local quantile(q, kind) =
        'histogram_quantile(' + q + ', sum by (le) (' + rate(buckets(kind)) + '))';
      local overall(q, kind) =
        'histogram_quantile(' + q + ', sum by (le) (increase('
        + gauge(buckets(kind)) + '[$__range])))';
      local mean(latency) =
        'sum(' + rate(latency + '_seconds_sum') + ') / (sum('
        + rate(latency + '_seconds_count') + ') > 0)';
      local passed = gauge('verification_passed');
      local verified = gauge('verification_timestamp_seconds');
      local yesNo = lib.mapping([
        { value: 0, color: 'red', text: 'no' },
        { value: 1, color: 'green', text: 'yes' },
      ]);
      local coloured = { mappings: yesNo, 'custom.cellOptions': { type: 'color-text' } };

      local heatmap(caption, kind) = lib.heatmap(
        caption, |||
          Each column is a quarter of an hour or more, each row a range of latency, a stronger
          colour is more requests. Each request of the probes counts by its own latency, 4 KiB and
          one in flight, at times when nobody else used the disk much: this is the disk itself,
          without your queue.
        |||, 's', [lib.buckets('sum by (le) (%s)' % rate(buckets(kind)))]
      ) + seldom + lib.noData('no such probes');

      // A column with what holds of each kind of probe, or of each test.
      local of(metric, times='') =
        local by = if std.startsWith(metric, 'probe') then 'kind' else 'test';
        lib.column('max by (' + lib.perDisk + ', ' + by + ') (' + gauge(metric) + ')' + times);

      local about = 'What was measured on purpose: probes, and acceptance tests.';
      lib.dashboard(lib.uids.probes, 'disksla / Probes and verification', about, [
        [
          lib.stat('Probes that failed', |||
            Probes whose last run measured nothing. The reason stands in the panel of failures.
          |||, 'short', [lib.counted(gauge('probe_success') + ' == 0', gauge('probe_success'))])
          + lib.alarming('red') + lib.noData('no probes configured'),
          lib.stat('Oldest probe', |||
            How long ago the last run of a probe was, of the one that has waited longest. Skipped
            runs do not count: a disk that is always busy is never probed.
          |||, 's', [lib.now('time() - min(%s)' % gauge('probe_last_run_timestamp_seconds'))])
          + lib.noData('no probes configured')
          + lib.steps([[null, 'green'], [3600, 'orange'], [86400, 'red']]),
          lib.stat('Probed reads, 99 of 100', |||
            99th percentile of the latency of probed reads within the chosen time, over all disks.
          |||, 's', [lib.now(overall('0.99', 'read'))])
          + lib.noData('no reads were probed'),
          lib.stat('Probed writes, 99 of 100', |||
            99th percentile of the latency of probed writes within the chosen time, over all disks.
          |||, 's', [lib.now(overall('0.99', 'write'))])
          + lib.noData('no writes were probed'),
          lib.stat('Tests not passed', |||
            Lines of the last acceptance test of each disk that were not passed.
          |||, 'short', [lib.counted(passed + ' == 0', passed)])
          + lib.alarming('red') + lib.noData('never verified'),
          lib.stat('Disks never verified', |||
            Disks of which no result of `disksla verify` is known.
          |||, 'short', [
            lib.counted(
              '%s unless on (%s) %s' % [gauge('disk_info'), lib.perDisk, verified],
              gauge('disk_info')
            ),
          ]) + lib.noData('no disks'),
        ],

        lib.row('Probes'),
        [
          lib.table(
            'Probes',
            |||
              The last run of each probe. Far fewer requests per second than asked for: the disk
              was too slow even for that little. A click on the disk leads to its story.
            |||,
            ['instance', 'device', 'kind'],
            ['measured', 'last run', 'asked for', 'reached', 'took'],
            [
              of('probe_success'),
              of('probe_last_run_timestamp_seconds', ' * 1000'),
              of('probe_target_iops'),
              of('probe_achieved_iops'),
              of('probe_duration_seconds'),
            ]
          )
          + lib.size(24, 8) + lib.noData('no probes configured') + lib.rowToDisk() + lib.overrides([
            lib.named('measured', coloured),
            lib.named('last run', { unit: 'dateTimeFromNow' }),
            lib.named('asked for', { unit: 'iops' }),
            lib.named('reached', { unit: 'iops' }),
            lib.named('took', { unit: 's' }),
          ]),
        ],
        [
          heatmap('Latency of probed reads', 'read'),
          heatmap('Latency of probed writes', 'write'),
        ],
        [
          lib.lines('Probed latency against the promise', |||
            Half, and 99 of 100, of the probed requests took no longer; dashed: the least that is
            promised to any of the chosen disks. Probes are few and small, so what lies above the
            promise here is not your load.
          |||, 's', [
            lib.query(quantile('0.5', 'read'), 'reads, half'),
            lib.query(quantile('0.99', 'read'), 'reads, 99 of 100'),
            lib.query(quantile('0.5', 'write'), 'writes, half'),
            lib.query(quantile('0.99', 'write'), 'writes, 99 of 100'),
            lib.query('min(%s)' % gauge('limit_latency_seconds'), 'promised'),
          ])
          + seldom + lib.noData('nothing was probed') + lib.overrides([
            lib.filled('reads, half', 'blue'),
            lib.filled('reads, 99 of 100', 'light-blue'),
            lib.filled('writes, half', 'purple'),
            lib.filled('writes, 99 of 100', 'light-purple'),
            lib.dashed('promised', 'green'),
          ]),
          lib.lines('Probed beside your own latency', |||
            Mean latency of probes and of all requests of the chosen disks. Both high: the disk is
            slow by itself. Only yours high: it is your queue.
          |||, 's', [
            lib.query(mean('probe_read_latency'), 'probed reads'),
            lib.query(mean('read_latency'), 'all reads'),
            lib.query(mean('probe_write_latency'), 'probed writes'),
            lib.query(mean('write_latency'), 'all writes'),
          ]) + seldom + lib.noData('nothing was probed'),
        ],
        [
          lib.lines('Runs', |||
            Probes that were run, by kind, whatever came of them.
          |||, 'short', [lib.query(increase('probe_runs_total', 'kind'), '{{kind}}')])
          + lib.stacked + seldom + lib.size(6, 7) + lib.noData('no probes configured'),
          lib.lines('Failures, by reason', |||
            Probes that measured nothing, by reason. What each reason means stands in
            docs/probes.md.
          |||, 'short', [lib.query(increase('probe_failures_total', 'reason'), '{{reason}}')])
          + lib.stacked + seldom + lib.size(6, 7) + lib.noData('no probes configured'),
          lib.lines('Skipped, by reason', |||
            Probes that were left out so as not to disturb anybody, by reason. Many by `throttled`
            or `busy` say that the disk has no room left.
          |||, 'short', [
            lib.query(increase('probe_skipped_total', 'reason') + ' > 0', '{{reason}}'),
          ])
          + lib.stacked + seldom + lib.size(6, 7) + lib.noData('none was skipped'),
          lib.lines('What probing costs', |||
            Bytes per second that probes moved, files that they wrote before included.
          |||, 'Bps', [lib.query('sum by (kind) (%s)' % rate('probe_bytes_total'), '{{kind}}')])
          + seldom + lib.size(6, 7) + lib.noData('no probes configured'),
        ],

        lib.row('Verification'),
        [
          lib.table(
            'The last acceptance test of each disk',
            |||
              What `disksla verify` measured, as a share of the promise (of a latency, promised
              over measured), against the share that the provider stands by for requests of that
              size. A test without a verdict is only shown: its latency is not guaranteed.
            |||,
            ['instance', 'device', 'test'],
            ['measured', 'required', 'passed', 'ended'],
            [
              of('verification_ratio'),
              of('verification_required_ratio'),
              of('verification_passed'),
              // Every test ended when the last of them did.
              of(
                'verification_ratio',
                ' * 0 + on (%s) group_left () 1000 * %s' % [lib.perDisk, verified]
              ),
            ]
          )
          + lib.noData('never verified: `disksla verify` has not been run') + lib.rowToDisk()
          + lib.overrides([
            lib.named('measured', { unit: 'percentunit', decimals: 1 }),
            lib.named('required', { unit: 'percentunit' }),
            lib.named('passed', coloured),
            lib.named('ended', { unit: 'dateTimeFromNow' }),
          ]),
        ],
        [
          lib.bars('Nearest to failing', |||
            The tests with the least margin: what was measured over what was required. Below 100 %
            it was not met (the configured tolerance, 3 % by default, is still let pass).
          |||, 'percentunit', [
            lib.now(
              'bottomk(15, %s / %s)'
              % [gauge('verification_ratio'), gauge('verification_required_ratio')],
              '{{instance}} {{device}} {{test}}'
            ),
          ])
          + lib.size(12, 9) + lib.noData('never verified')
          + lib.steps([[null, 'red'], [0.97, 'orange'], [1, 'green']]),
          lib.lines('Results over time', |||
            Share of the promise that each test measured, from one acceptance test to the next:
            steps down are a disk that got worse.
          |||, 'percentunit', [lib.query(gauge('verification_ratio'), '{{device}} {{test}}')])
          + lib.size(12, 9) + lib.seriesToDisk + lib.lineAt(1, 'green')
          + lib.noData('never verified'),
        ],
      ], from='now-24h'),
  },
}
