// Dashboard of active measurements: probes of the daemon, and acceptance tests (`disksla verify`).
{
  grafanaDashboards+:: {
    'probes.json':
      local lib = (import 'lib.libsonnet')($._config);
      local gauge(metric, more='') = 'disksla_' + metric + '{' + lib.disk + more + '}';
      local rate(metric) = 'rate(' + gauge(metric) + '[$__rate_interval])';
      // Probes run every ten minutes by default; shorter steps would be empty.
      local coarse = { interval: '15m' };
      // Per hour, whatever the interval is.
      local hourly(metric, by) = '3600 * sum by (' + by + ') (' + rate(metric) + ')';
      local runs =
        'sum by (kind) (changes(' + gauge('probe_last_run_timestamp_seconds') + '[1h]))';
      local buckets(kind) = 'probe_' + kind + '_latency_seconds_bucket';
      local quantile(q, kind) =
        'histogram_quantile(' + q + ', sum by (le) (' + rate(buckets(kind)) + '))';
      // Of the disk that has the highest p99 within the selected time range.
      local worst(kind) =
        'max(histogram_quantile(0.99, sum by (' + lib.perDisk + ', le) (increase('
        + gauge(buckets(kind)) + '[$__range]))))';
      // Mean latency of probes of each disk as a share of the latency that its own terms promise.
      local overPromise(kind) =
        local series = 'probe_' + kind + '_latency_seconds';
        'topk(10, %s / (%s > 0) / %s)'
        % [rate(series + '_sum'), rate(series + '_count'), gauge('limit_latency_seconds')];
      local mean(seconds, requests) =
        'sum(' + rate(seconds) + ') / (sum(' + rate(requests) + ') > 0)';
      local probed(kind) =
        mean('probe_' + kind + '_latency_seconds_sum', 'probe_' + kind + '_latency_seconds_count');
      local all(kind) = mean(kind + '_time_seconds_total', kind + 's_completed_total');
      // Mean latency of the probes of each disk within the selected time range.
      local latency(kind) =
        local series = 'probe_' + kind + '_latency_seconds';
        'label_replace(sum by (%s) (increase(%s[$__range])) / sum by (%s) (increase(%s[$__range])), "kind", "%s-latency", "", "")'
        % [lib.perDisk, gauge(series + '_sum'), lib.perDisk, gauge(series + '_count'), kind];
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
        |||, 's', [lib.buckets(rate(buckets(kind)))]
      ) + coarse + lib.noData('no such probes, or %s' % lib.lean);

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
          + lib.noData('no probes configured, or %s' % lib.lean)
          + lib.steps([[null, 'green'], [3600, 'orange'], [86400, 'red']]),
          lib.stat('Probed reads, p99', |||
            p99 of the latency of probed reads within the selected time range, of the disk with the
            highest.
          |||, 's', [lib.now(worst('read'))])
          + lib.noData('no reads probed, or %s' % lib.lean),
          lib.stat('Probed writes, p99', |||
            p99 of the latency of probed writes within the selected time range, of the disk with the
            highest.
          |||, 's', [lib.now(worst('write'))])
          + lib.noData('no writes probed, or %s' % lib.lean),
          lib.stat('Failed tests', |||
            Failed tests in the last acceptance test of each disk.
          |||, 'short', [lib.counted(passed + ' == 0', passed)])
          + lib.alarming('red') + lib.noData('never verified'),
          lib.stat('Never verified', |||
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
              The last run of each probe, and the mean latency within the selected time range. Click on
              a disk to see its dashboard.
            |||,
            ['instance', 'device', 'kind'],
            ['succeeded', 'last run', 'mean latency'],
            [
              of('probe_success'),
              of('probe_last_run_timestamp_seconds', ' * 1000'),
              lib.column('max by (%s, kind) (%s or %s)' % [lib.perDisk, latency('read'), latency('write')]),
            ],
            order=['device', 'kind', 'succeeded', 'last run', 'mean latency', 'instance']
          )
          + lib.size(24, 8) + lib.rowToDisk() + lib.overrides([
            lib.named('succeeded', coloured),
            lib.named('last run', { unit: 'dateTimeFromNow' }),
            lib.named('mean latency', { unit: 's', decimals: 2 }),
          ]),
        ],
        [
          heatmap('Latency of probed reads', 'read'),
          heatmap('Latency of probed writes', 'write'),
        ],
        [
          lib.lines('Probed latency', |||
            p50 and p99 of the latency of probed requests, of all selected disks together. Probes are
            few and small, so the latency of your load does not add to them.
          |||, 's', [
            lib.query(quantile('0.5', 'read'), 'reads, p50'),
            lib.query(quantile('0.99', 'read'), 'reads, p99'),
            lib.query(quantile('0.5', 'write'), 'writes, p50'),
            lib.query(quantile('0.99', 'write'), 'writes, p99'),
          ])
          + coarse + lib.size(8, 8) + lib.noData('no probes ran, or %s' % lib.lean) + lib.overrides([
            lib.filled('reads, p50', 'blue'),
            lib.plain('reads, p99', 'light-blue'),
            lib.filled('writes, p50', 'purple'),
            lib.plain('writes, p99', 'light-purple'),
          ]),
          lib.lines('Probed latency, share of the promise', |||
            Mean latency of probes of each disk as a share of the latency that its own terms promise,
            for the ten highest. Above 100 %, the disk is slower than promised, whatever the load is.
          |||, 'percentunit', [
            lib.query(overPromise(kind), '{{instance}} {{device}} ' + kind + 's')
            for kind in ['read', 'write']
          ])
          + coarse + lib.size(8, 8) + lib.seriesToDisk + lib.lineAt(1, 'orange') + lib.unfilled
          + lib.noData('no latency is promised, or no probes ran'),
          lib.lines('Probed latency and latency of all requests', |||
            Mean latency of probes and of all requests of the selected disks. Both high: the disk is
            slow. Only the latency of all requests high: requests wait in the queue of your load.
          |||, 's', [
            lib.query(probed('read'), 'probed reads'),
            lib.query(all('read'), 'all reads'),
            lib.query(probed('write'), 'probed writes'),
            lib.query(all('write'), 'all writes'),
          ]) + coarse + lib.size(8, 8) + lib.noData('no probes ran') + lib.coloured({
            'probed reads': 'blue',
            'all reads': 'light-blue',
            'probed writes': 'purple',
            'all writes': 'light-purple',
          }),
        ],
        [
          lib.lines('Runs per hour', |||
            Probes that ran in the hour before, successful or not, by kind.
          |||, 'short', [lib.query(runs, '{{kind}}')])
          + lib.stacked + coarse + lib.size(6, 7) + lib.noData('no probes configured, or %s' % lib.lean),
          lib.lines('Failures per hour, by reason', |||
            Probes that failed, by reason. docs/measure.md explains the reasons.
          |||, 'short', [lib.query(hourly('probe_failures_total', 'reason'), '{{reason}}')])
          + lib.stacked + coarse + lib.size(6, 7) + lib.noData('no probe failed, or %s' % lib.lean),
          lib.lines('Skipped per hour, by reason', |||
            Probes that were skipped, by reason; docs/measure.md explains the reasons. Many with the
            reason `throttled` or `busy` mean that the disk has no capacity left.
          |||, 'short', [
            lib.query(hourly('probe_skipped_total', 'reason') + ' > 0', '{{reason}}'),
          ])
          + lib.stacked + coarse + lib.size(6, 7) + lib.noData('none was skipped, or %s' % lib.lean),
          lib.lines('Requests of probes', |||
            Requests per second of all probes; each has 4 KiB.
          |||, 'iops', [
            lib.query('sum(%s)' % rate('probe_' + kind + '_latency_seconds_count'), kind + 's')
            for kind in ['read', 'write']
          ])
          + lib.decimals(2) + coarse + lib.size(6, 7) + lib.noData('no probes configured')
          + lib.coloured({ reads: 'blue', writes: 'purple' }),
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
            ],
            order=['device', 'test', 'passed', 'measured', 'required', 'instance', 'ended']
          )
          + lib.rowToDisk()
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
          |||, 'percentunit', '${__field.labels.instance} ${__field.labels.device} ${__field.labels.test}', [
            lib.now(
              'bottomk(15, %s / %s)'
              % [gauge('verification_ratio'), gauge('verification_required_ratio')],
              '{{instance}} {{device}} {{test}}'
            ),
          ])
          + lib.size(12, 9) + lib.noData('never verified')
          + lib.steps([[null, 'red'], [0.97, 'orange'], [1, 'green']]),
          lib.lines('Result history', |||
            Result of each test as a share of the promise, from one acceptance test to the next. A
            step down means that the disk has become slower.
          |||, 'percentunit', [lib.query(gauge('verification_ratio'), '{{instance}} {{device}} {{test}}')])
          + lib.size(12, 9) + lib.unfilled + lib.seriesToDisk + lib.lineAt(1, 'green')
          + lib.noData('never verified'),
        ],
      ], claims=false, from='now-24h'),
  },
}
