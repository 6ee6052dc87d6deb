// Dashboard of active measurements: probes of the daemon, and acceptance tests (`disksla verify`).
{
  grafanaDashboards+:: {
    'probes.json':
      local lib = (import 'lib.libsonnet')($._config);
      local gauge(metric, more='') = 'disksla_' + metric + '{' + lib.disk + more + '}';
      local rate(metric) = 'rate(' + gauge(metric) + '[$__rate_interval])';
      // Probes run every ten minutes by default; shorter steps would be empty.
      local coarse = { interval: '15m' };
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
          Columns are 15 minutes or more, rows are ranges of latency; a stronger colour means more
          requests. Every request of a probe (4 KiB, one in flight) counts by its own latency.
          Probes run only while the disk is not busy, so this is the latency of the disk without the
          queue of your load.
        |||, 's', [lib.buckets('sum by (le) (%s)' % rate(buckets(kind)))]
      ) + coarse + lib.noData('no such probes');

      // A column by kind of probe, or by test.
      local of(metric, times='') =
        local by = if std.startsWith(metric, 'probe') then 'kind' else 'test';
        lib.column('max by (' + lib.perDisk + ', ' + by + ') (' + gauge(metric) + ')' + times);

      local about = 'Results of probes and of acceptance tests.';
      lib.dashboard(lib.uids.probes, 'disksla / Probes and verification', about, [
        [
          lib.stat('Failed probes', |||
            Probes whose last run failed. The panel of failures shows the reasons.
          |||, 'short', [lib.counted(gauge('probe_success') + ' == 0', gauge('probe_success'))])
          + lib.alarming('red') + lib.noData('no probes configured'),
          lib.stat('Oldest probe', |||
            Time since the last run of the probe that has not run for the longest time. Skipped
            probes do not count as runs: a disk that is always busy is never probed.
          |||, 's', [lib.now('time() - min(%s)' % gauge('probe_last_run_timestamp_seconds'))])
          + lib.noData('no probes configured')
          + lib.steps([[null, 'green'], [3600, 'orange'], [86400, 'red']]),
          lib.stat('Probed reads, 99th percentile', |||
            99th percentile of the latency of probed reads within the selected time range, over all
            disks.
          |||, 's', [lib.now(overall('0.99', 'read'))])
          + lib.noData('no reads were probed'),
          lib.stat('Probed writes, 99th percentile', |||
            99th percentile of the latency of probed writes within the selected time range, over all
            disks.
          |||, 's', [lib.now(overall('0.99', 'write'))])
          + lib.noData('no writes were probed'),
          lib.stat('Failed tests', |||
            Failed tests in the last acceptance test of each disk.
          |||, 'short', [lib.counted(passed + ' == 0', passed)])
          + lib.alarming('red') + lib.noData('never verified'),
          lib.stat('Disks never verified', |||
            Disks without a result of `disksla verify`.
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
              The last run of each probe. If the reached IOPS are far below the target, the disk was
              too slow even for this rate. Click on a disk to see its dashboard.
            |||,
            ['instance', 'device', 'kind'],
            ['succeeded', 'last run', 'target', 'reached', 'duration'],
            [
              of('probe_success'),
              of('probe_last_run_timestamp_seconds', ' * 1000'),
              of('probe_target_iops'),
              of('probe_achieved_iops'),
              of('probe_duration_seconds'),
            ]
          )
          + lib.size(24, 8) + lib.noData('no probes configured') + lib.rowToDisk() + lib.overrides([
            lib.named('succeeded', coloured),
            lib.named('last run', { unit: 'dateTimeFromNow' }),
            lib.named('target', { unit: 'iops' }),
            lib.named('reached', { unit: 'iops' }),
            lib.named('duration', { unit: 's' }),
          ]),
        ],
        [
          heatmap('Latency of probed reads', 'read'),
          heatmap('Latency of probed writes', 'write'),
        ],
        [
          lib.lines('Probed and promised latency', |||
            Median and 99th percentile of the latency of probed requests; dashed: the lowest latency
            that is promised for any of the selected disks. Probes are few and small, so latencies
            above the promise are not caused by your load.
          |||, 's', [
            lib.query(quantile('0.5', 'read'), 'reads, median'),
            lib.query(quantile('0.99', 'read'), 'reads, 99th percentile'),
            lib.query(quantile('0.5', 'write'), 'writes, median'),
            lib.query(quantile('0.99', 'write'), 'writes, 99th percentile'),
            lib.query('min(%s)' % gauge('limit_latency_seconds'), 'promised'),
          ])
          + coarse + lib.noData('no probes ran') + lib.overrides([
            lib.filled('reads, median', 'blue'),
            lib.filled('reads, 99th percentile', 'light-blue'),
            lib.filled('writes, median', 'purple'),
            lib.filled('writes, 99th percentile', 'light-purple'),
            lib.dashed('promised', 'green'),
          ]),
          lib.lines('Probed latency and latency of all requests', |||
            Mean latency of probes and of all requests of the selected disks. Both high: the disk is
            slow. Only the latency of all requests high: requests wait in the queue of your load.
          |||, 's', [
            lib.query(mean('probe_read_latency'), 'probed reads'),
            lib.query(mean('read_latency'), 'all reads'),
            lib.query(mean('probe_write_latency'), 'probed writes'),
            lib.query(mean('write_latency'), 'all writes'),
          ]) + coarse + lib.noData('no probes ran'),
        ],
        [
          lib.lines('Runs', |||
            Probes that ran, successful or not, by kind.
          |||, 'short', [lib.query(increase('probe_runs_total', 'kind'), '{{kind}}')])
          + lib.stacked + coarse + lib.size(6, 7) + lib.noData('no probes configured'),
          lib.lines('Failures, by reason', |||
            Probes that failed, by reason. docs/probes.md explains the reasons.
          |||, 'short', [lib.query(increase('probe_failures_total', 'reason'), '{{reason}}')])
          + lib.stacked + coarse + lib.size(6, 7) + lib.noData('no probes configured'),
          lib.lines('Skipped, by reason', |||
            Probes that were skipped, by reason; docs/probes.md explains the reasons. Many with the
            reason `throttled` or `busy` mean that the disk has no capacity left.
          |||, 'short', [
            lib.query(increase('probe_skipped_total', 'reason') + ' > 0', '{{reason}}'),
          ])
          + lib.stacked + coarse + lib.size(6, 7) + lib.noData('no probes were skipped'),
          lib.lines('Throughput of probes', |||
            Bytes per second that probes transferred, including the writing of their scratch files.
          |||, 'Bps', [lib.query('sum by (kind) (%s)' % rate('probe_bytes_total'), '{{kind}}')])
          + coarse + lib.size(6, 7) + lib.noData('no probes configured'),
        ],

        lib.row('Verification'),
        [
          lib.table(
            'Last acceptance test of each disk',
            |||
              Result of `disksla verify` as a share of the promise (for latency: promised over
              measured), and the share that is required for requests of this size. A test without a
              verdict is for information: its latency is not guaranteed.
            |||,
            ['instance', 'device', 'test'],
            ['measured', 'required', 'passed', 'ended'],
            [
              of('verification_ratio'),
              of('verification_required_ratio'),
              of('verification_passed'),
              // There is one time of the end for all tests of a disk.
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
          lib.bars('Tests with the smallest margin', |||
            Measured over required result of the tests with the smallest margin. Below 100 % the
            requirement is not met; a test still passes within the configured tolerance (default:
            3 %).
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
            Result of each test as a share of the promise, from one acceptance test to the next. A
            step down means that the disk has become slower.
          |||, 'percentunit', [lib.query(gauge('verification_ratio'), '{{device}} {{test}}')])
          + lib.size(12, 9) + lib.seriesToDisk + lib.lineAt(1, 'green')
          + lib.noData('never verified'),
        ],
      ], from='now-24h'),
  },
}
