// Dashboard of one disk, from the metrics of the daemon alone: IOPS, throughput, latency, throttling.
local state = import '../state.libsonnet';

{
  grafanaDashboards+:: {
    'disk.json':
      local config = $._config;
      local lib = (import 'lib.libsonnet')(config);
      local machine = (import 'machine.libsonnet')(config);
      local promql = lib.promql;
      local disk = lib.disk;
      local rate(metric, more='') =
        'rate(disksla_' + metric + '{' + disk + more + '}[$__rate_interval])';
      local sum(expr) = 'sum by (' + lib.perDisk + ') (' + expr + ')';
      local ratio(above, below) = above + ' / (' + below + ' > 0)';
      // Share of the assessed time; absent where nothing was assessed.
      local share(verdict) = ratio(
        sum(rate('verdict_seconds_total', ', verdict="' + verdict + '"')),
        sum(rate('verdict_seconds_total'))
      );
      // Share of the time throttled by some limits.
      local throttled(matcher) = sum(rate('throttled_seconds_total', ', ' + matcher));
      local gauge(metric, more='') = 'disksla_' + metric + '{' + disk + more + '}';
      local quantile(q, metric) =
        'histogram_quantile(' + q + ', sum by (' + lib.perDisk + ', le) ('
        + rate(metric + '_bucket') + '))';
      // Windows per second up to a load.
      local windows(bound) =
        'sum without (le) (' + rate('window_load_ratio_bucket', ', le="' + bound + '"') + ')';
      local mean(kind) =
        rate(kind + '_time_seconds_total') + ' / ' + rate(kind + 's_completed_total') + ' > 0';

      // Of each consumer, while the disk is watched.
      local consumers(caption, kind, unit) =
        lib.lines(caption, |||
          Rate by unit, container or pod, in the time in which the disk is watched: while it is
          throttled or busy, and a minute after. A disk has at most five of them; kernel is what no
          group did, such as a journal, and unattributed what is of groups that have ended.
        |||, unit, [
          lib.query(
            'sum by (consumer) (%s) / on () group_left () sum(%s > 0)'
            % [rate('consumer_' + kind + '_total'), rate('consumer_watched_seconds_total')],
            '{{consumer}}'
          ),
        ])
        + lib.stacked + lib.noData('not throttled or busy, not known, or %s' % lib.lean);

      local disk_state = 'floor(\n%s)' % state.expr(
        share,
        active='1 - ' + share('idle'),
        slow=ratio(sum(rate('slow_seconds_total')), sum(rate('verdict_seconds_total'))),
        at_known_limit=throttled('limit!="unknown"') + ' > 0',
        out_of_credits='min by (%s) (%s) < %g'
                       % [lib.perDisk, lib.creditsLeft('_upper_bound'), config.creditsEmptyShare],
        at_machine_limit=throttled(promql.by_machine) + ' > ' + throttled(promql.by_others),
        noticeable=config.noticeableShare,
        disk=lib.perDisk
      );
      // Seconds with these verdicts, or throttled by these limits, within the selected time range.
      local increase(metric, matcher) =
        sum('increase(disksla_' + metric + '{' + disk + ', ' + matcher + '}[$__range])');
      local seconds(verdicts) = increase('verdict_seconds_total', 'verdict=~"%s"' % verdicts);
      local tested = seconds('met|below|stalled') + ' + '
                     + increase('throttled_seconds_total', promql.by_disk);

      local slow_seconds = sum('increase(disksla_slow_seconds_total{' + disk + '}[$__range])');
      local at(limits) = increase('throttled_seconds_total', limits);
      local conditions = [
        ['The disk: hung', seconds('stalled'), 'dark-red'],
        ['The disk: less than promised', seconds('below'), 'red'],
        ['The disk: slow', slow_seconds, 'light-red'],
        ['The machine: throttled', at(promql.by_machine), 'dark-orange'],
        ['You: throttled', at(promql.by_disk), 'orange'],
        ['Unknown limit', at('limit="unknown"'), 'yellow'],
        ['OK', '(%s - (%s or 0 * %s))' % [seconds('met|unproven'), slow_seconds, seconds('.+')], 'green'],
        ['Idle', seconds('idle'), 'text'],
      ];
      local load = ratio(rate('window_load_ratio_sum'), rate('window_load_ratio_count'));

      // A limit, with the label `shared` where reads and writes have one for both.
      local limit(metric) =
        'label_replace(%s * on (%s) group_left (budget) topk by (%s) (1, %s),'
        % [gauge(metric), lib.perDisk, lib.perDisk, gauge('disk_info')]
        + ' "shared", ", shared", "budget", "sum|time_shared")';

      // Observed mean, peak of 100 ms, promise, and burst limit.
      local traffic(caption, kind, unit, observed, suffix) =
        // Without any, no chart of zeros.
        local seen = ' and on (' + lib.perDisk + ') increase(disksla_' + observed + '{' + disk + '}[$__range]) > 0';
        lib.lines(caption, |||
          Filled: mean rate. Dotted: highest rate in any 100 ms of the last 60 s, which the mean
          hides. Dashed: promised rate and, above it, the burst limit while credits last. Peaks at
          the promised rate with a mean far below it are bursts that are cut by the limiter. Where
          reads and writes share the limit, both use it up: see the totals. The line is for the
          smallest requests; larger ones may cost more, which the load takes into account.
        |||, unit, [
          lib.query(each[0] + seen, each[1])
          for each in [
            [rate(observed), 'observed'],
            [gauge('peak_' + kind + suffix), 'peak of 100 ms'],
            [limit('limit_' + kind + suffix), 'promised{{shared}}'],
            [limit('burst_limit_' + kind + suffix), 'while credits last{{shared}}'],
          ]
        ])
        + lib.size(8, 9)
        + lib.noData('none in the selected time range')
        + lib.overrides([
          lib.filled('observed', 'blue'),
          lib.dotted('peak of 100 ms', 'light-blue'),
          lib.dashed('promised', 'green'),
          lib.dashed('while credits last', 'purple'),
        ]);

      // Sum of reads and writes, the limit that they share, and the observed ceiling.
      local total(caption, unit, reads, writes, suffix) =
        lib.lines(caption, |||
          Filled: reads plus writes. Dotted: observed ceiling, the rate at which the disk was last
          seen throttled; it is measured and does not depend on the configured terms. A ceiling
          well below the promise means that a limit of the machine was reached, or that the
          configured terms or size are wrong, or is evidence for the provider. Dashed: promised
          rate, where reads and writes share one.
        |||, unit, [
          lib.query(rate(reads) + ' + ' + rate(writes), 'observed'),
          lib.query(gauge('observed_ceiling' + suffix), 'observed ceiling'),
          lib.query(
            '%s and on (%s) disksla_disk_info{%s, budget=~"sum|time_shared"}'
            % [gauge('limit_read' + suffix), lib.perDisk, disk],
            'promised, shared'
          ),
        ])
        + lib.size(8, 9)
        + lib.noData('no samples')
        + lib.overrides([
          lib.filled('observed', 'blue'),
          lib.dotted('observed ceiling', 'orange'),
          lib.dashed('promised, shared', 'green'),
        ]);

      local latency(caption, kind) =
        lib.heatmap(
          caption, |||
            Columns are moments, rows are ranges of latency; a stronger colour means more requests
            per second. Latencies are means of windows, so a single slow request among many does
            not show. The bounds of the rows include the latencies that providers promise (0.5, 1, 3,
            10 and 20 ms). A band that moves up with the load is queueing at a limit.
            The profile `full` has more rows, and `lean` none.
          |||, 's', [
            lib.buckets(rate(kind + '_latency_seconds_bucket')),
          ]
        ) + lib.noData('no ' + kind + 's, or %s' % lib.lean);

      // The promised latency becomes the label `le`, which selects the bucket.
      local within(kind) = |||
        (
          sum by (%(perDisk)s, le) (%(buckets)s)
          and on (%(perDisk)s, le) count_values by (%(perDisk)s) ("le", %(promised)s)
        ) / ignoring (le) (%(all)s > 0)
      ||| % {
        perDisk: lib.perDisk,
        buckets: rate(kind + '_latency_seconds_bucket'),
        promised: gauge('limit_latency_seconds'),
        all: sum(rate(kind + '_latency_seconds_bucket', ', le="+Inf"')),
      };

      local about = 'One disk in detail: is the load the problem, or the disk?';
      lib.dashboard(lib.uids.disk, 'disksla / Disk', about, [
        [
          lib.stat('State', |||
            State of the disk at the end of the selected time range. Yellow, orange and purple: the
            disk gives what was sold, and the load requests more. Dark orange: so does the machine,
            and a larger disk does not help. Light red: the disk is slow. Red: it gives less than was
            sold. Green: the cause of a slow program is elsewhere.
          |||, 'none', [lib.now(disk_state)])
          + lib.asState + lib.size(8, 5) + lib.noData('no samples of this disk at that time'),
          lib.stat('Share of the time', |||
            What the disk did, as shares of the selected time range. You: throttled at a limit
            that you bought. The machine: at one that it has for several disks; a larger disk does not
            help. The disk: slow, less than promised, or hung. What did not happen is not shown.
          |||, 'percentunit', [
            lib.now('%s / %s > 0.0005' % [each[1], seconds('.+')], each[0])
            for each in conditions
          ])
          + lib.size(16, 5) + lib.noData('no samples')
          + lib.coloured({ [each[0]]: each[2] for each in conditions }),
        ],
        [
          lib.timeline('State history', |||
            The worst condition at each moment that was true for at least %g %% of the rate interval.
          ||| % (config.noticeableShare * 100), [lib.query(disk_state, '{{device}}')])
          + lib.size(24, 4) + lib.noData('no samples of this disk at that time'),
        ],
        [
          lib.stat('SLA compliance', |||
            Share of the tested seconds (met, throttled, below or stalled) within the selected time
            range in which the disk was neither below its promise nor stalled. Time throttled at a
            limit of the machine, or at an unknown limit, does not count.
          |||, 'percentunit', [lib.now('1 - ' + ratio(seconds('below|stalled'), tested))])
          + lib.size(6, 4) + lib.noData('promise not tested')
          + lib.decimals(2) + lib.steps([[null, 'red'], [config.dashboardCompliance, 'green']]),
          lib.stat('Time until the limit', |||
            When the load reaches the limit (with burst credits, the baseline) if it goes on to grow as in
            the selected time range. Absent unless this growth explains half of its changes or more.
          |||, 's', [lib.now(|||
            (1 - %(load)s)
              / (deriv((%(load)s)[$__range:]) > 2.45 / $__range_s * stddev_over_time((%(load)s)[$__range:]))
              > 0
          ||| % { load: load })])
          + lib.size(6, 4) + lib.noData('no trend, or %s' % lib.lean),
          lib.stat('Burst credits', |||
            Estimate of the burst credits left, as a share of the capacity. The row below shows the
            bounds too.
          |||, 'percentunit', [lib.now(lib.creditsLeft(), '{{resource}}')])
          + lib.size(6, 4) + lib.noData('no credits in these terms')
          + lib.steps([[null, 'red'], [config.creditsEmptyShare, 'orange'], [0.25, 'green']]),
          lib.text('Terms', |||
            Terms of the disk: what it was sold as. Without terms in the configuration, only the
            observed ceiling is known.
          |||, 'label_replace(%s, "terms", "written out", "terms", "custom")' % gauge('disk_info'),
                   'terms')
          + lib.size(6, 4) + lib.noData('unknown disk'),
        ],
        [
          lib.text('Mounted at', |||
            Where the file systems of the disk and of its partitions are mounted. Bind mounts, pods
            and containers are left out.
          |||, gauge('mount_info'), 'mountpoint')
          + lib.size(8, 4) + lib.noData('not mounted'),
          lib.text('Claim', |||
            Namespace and name of the PersistentVolumeClaim of Kubernetes that the disk is.
          |||, 'label_join(%s, "claim", "/", "namespace", "persistentvolumeclaim")'
               % gauge('kubernetes_volume_info', ', persistentvolumeclaim!=""'), 'claim')
          + lib.size(8, 4) + lib.noData('no claim'),
          lib.text('Serial number', |||
            Identifies the disk to the provider; quote it in a support ticket.
          |||, gauge('disk_info', ', serial!=""'), 'serial')
          + lib.size(8, 4) + lib.noData('the disk has none'),
        ],

        lib.row('IOPS and throughput'),
        [
          lib.lines('Time by verdict', |||
            Shares of the time by the verdict on each 100 ms. OK: the load requested less than the
            promise and was served. Promise kept: at or above the promise. Throttled: requests waited
            because of a limit. Less than promised: no limit explains what the disk gave. Time that
            was not assessed is missing up to 100 %. Time in which the disk was slow is in these shares.
          |||, 'percentunit', [
            lib.query('sum by (verdict) (' + rate('verdict_seconds_total') + ')', '{{verdict}}'),
          ])
          + lib.stacked + lib.byVerdict + lib.range(0, 1) + lib.noData('no samples'),
          lib.lines('Load', |||
            Utilization of the limit under its cost model: at 100 % the disk is at the limit. The
            shares of windows of 100 ms are exact; many at the limit with a low mean are a load in
            bursts.
          |||, 'percentunit', [
            lib.query(load, 'mean load'),
          ] + [
            lib.query(
              '1 - ' + ratio(windows(bound[0]), windows('+Inf')), 'windows above %s %%' % bound[1]
            )
            for bound in [['0.8', '80'], ['0.95', '95']]
          ])
          + lib.lineAt(1, 'orange')
          + lib.noData('no limits are known, or the disk was idle')
          + lib.overrides([
            lib.filled('mean load', 'blue'),
            lib.plain('windows above 80 %', 'light-purple'),
            lib.plain('windows above 95 %', 'purple'),
          ]),
        ],
        [
          traffic('Read IOPS', 'read', 'iops', 'reads_completed_total', '_iops'),
          traffic('Write IOPS', 'write', 'iops', 'writes_completed_total', '_iops'),
          total(
            'Total IOPS and observed ceiling',
            'iops',
            'reads_completed_total',
            'writes_completed_total',
            '_iops'
          ),
        ],
        [
          traffic('Read throughput', 'read', 'binBps', 'read_bytes_total', '_bytes_per_second'),
          traffic('Write throughput', 'written', 'binBps', 'written_bytes_total', '_bytes_per_second'),
          total(
            'Total throughput and observed ceiling',
            'binBps',
            'read_bytes_total',
            'written_bytes_total',
            '_bytes_per_second'
          ),
        ],

        [
          lib.lines('Request size', |||
            Mean size of requests. Providers charge large requests more, up to the point where
            bandwidth is the limit. An empty flush counts as a write of 0 bytes where the disk has a
            write-back cache.
          |||, 'bytes', [
            lib.query(
              ratio(rate(each[1] + '_bytes_total'), rate(each[0] + 's_completed_total')),
              each[0] + 's, mean'
            )
            for each in [['read', 'read'], ['write', 'written']]
          ])
          + lib.noData('no requests')
          + lib.coloured({ 'reads, mean': 'blue', 'writes, mean': 'purple' }),
          lib.lines('Mean queue depth', |||
            Requests in flight on average (aqu-sz of iostat). A low queue depth limits IOPS by the
            latency; the promise of a type applies from the queue depth that its provider states.
          |||, 'short', [
            lib.query(rate(kind + '_time_seconds_total'), kind + 's')
            for kind in ['read', 'write']
          ])
          + lib.stacked + lib.decimals(1) + lib.noData('no samples')
          + lib.coloured({ reads: 'blue', writes: 'purple' }),
        ],

        lib.row('Latency'),
        [
          lib.lines('Latency', |||
            Mean latency of requests, and p99 of the means of windows, queueing included: a single slow
            request does not show. Dashed: promised latency. Above the promise while throttled: the queue of the host itself. Above the
            promise at a low load: the disk.
          |||, 's', [
            lib.query(mean('read'), 'reads, mean'),
            lib.query(mean('write'), 'writes, mean'),
            lib.query(quantile('0.99', 'read_latency_seconds'), 'reads, p99 of windows'),
            lib.query(quantile('0.99', 'write_latency_seconds'), 'writes, p99 of windows'),
            lib.query(gauge('limit_latency_seconds'), 'promised'),
          ])
          + lib.noData('no requests') + lib.overrides([
            lib.filled('reads, mean', 'blue'),
            lib.filled('writes, mean', 'purple'),
            lib.plain('reads, p99 of windows', 'light-blue'),
            lib.plain('writes, p99 of windows', 'light-purple'),
            lib.dashed('promised', 'green'),
          ]),
          lib.lines('Requests within the promised latency', |||
            Share of the requests whose latency was not above the promised latency. Absent if the
            promised latency is not a bound of the histogram.
          |||, 'percentunit', [
            lib.query(within('read'), 'reads'),
            lib.query(within('write'), 'writes'),
          ])
          + lib.range(0, 1)
          + lib.noData('no such promise, no requests, or %s' % lib.lean) + lib.coloured({
            reads: 'blue',
            writes: 'purple',
          }),
        ],
        [
          latency('Read latency', 'read'),
          latency('Write latency', 'write'),
        ],
        [
          lib.lines('Flush latency', |||
            Mean latency of cache flushes. A program that calls fsync or fdatasync waits for a flush
            after its writes. No limiter is known to charge flushes, so a latency that rises here
            is that of the disk.
          |||, 's', [
            lib.query(
              '%s / (%s > 0)'
              % [rate('flush_time_seconds_total'), rate('flushes_completed_total')],
              'flushes, mean'
            ),
          ])
          + lib.noData('no flushes, not counted by this kernel, or %s' % lib.lean)
          + lib.coloured({ 'flushes, mean': 'orange' }),
          lib.lines('Flushes', |||
            Cache flushes per second. On a disk with a write-back cache the kernel also counts an
            empty flush as a write. No limiter is known to charge it.
          |||, 'iops', [
            lib.query(rate('flushes_completed_total'), 'flushes'),
          ])
          + lib.noData('no flushes, not counted by this kernel, or %s' % lib.lean)
          + lib.coloured({ flushes: 'orange' }),
        ],

        lib.collapsed('Burst credits', [[
          lib.bounds('Burst credits left', |||
            Burst credits as a share of the capacity. The guest cannot read its credits: the true
            level is always within the band, and the line is the estimate. At 0 the disk is limited
            to its baseline.
          |||, lib.creditsLeft)
          + lib.noData('terms without burst credits'),
          lib.lines('Time until the credits are used up', |||
            Estimated time until the burst credits are used up, at the rate of the last second.
            Absent while the credits do not decrease.
          |||, 's', [lib.query(gauge('burst_exhaustion_seconds') + ' < Inf', '{{resource}}')])
          + lib.size(8, 8) + lib.noData('the credits do not decrease'),
        ]]),

        lib.row('Throttling and its effect on the host'),
        [
          lib.lines('Throttled time by limit', |||
            Share of the time in which the disk was throttled while requests waited, by the limit
            that was reached: of the disk, or of the machine for several disks together. Unknown:
            throttled at a flat rate that neither explains.
          |||, 'percentunit', [lib.query(rate('throttled_seconds_total'), '{{limit}}')])
          + lib.stacked + lib.range(0, 1) + lib.size(8, 8) + lib.noData('no samples')
          + lib.byLimit,
          lib.lines('Queue depth', |||
            Requests in flight, and how many of them on average waited because of throttling. If
            nearly all of them wait, a higher queue depth does not give more IOPS.
          |||, 'short', [
            lib.query(gauge('inflight'), 'in flight'),
            lib.query(rate('throttle_wait_seconds_total'), 'waiting because throttled'),
          ]) + lib.decimals(1) + lib.noData('no samples, or %s' % lib.lean) + lib.size(8, 8) + lib.coloured({
            'in flight': 'blue',
            'waiting because throttled': 'orange',
          }),
          lib.lines('iowait and pressure while throttled', |||
            CPUs in iowait, and share of the time in which some or all tasks of the host were stalled
            for I/O (PSI), in throttled windows of this disk. A symptom by correlation. Asynchronous
            I/O causes almost no iowait, so a low value does not prove that programs do not wait.
          |||, 'percentunit', [
            lib.query(rate('throttled_iowait_seconds_total'), 'iowait, of one CPU'),
            lib.query(rate('throttled_pressure_seconds_total'), 'tasks stalled: {{kind}}'),
          ]) + lib.noData('no iowait or pressure while throttled') + lib.size(8, 8) + lib.coloured({
            'iowait, of one CPU': 'blue',
            'tasks stalled: some': 'purple',
            'tasks stalled: full': 'dark-purple',
          }),
        ],

        [
          consumers('Who uses the disk, by requests', 'requests', 'iops'),
          consumers('Who uses the disk, by bytes', 'bytes', 'binBps'),
        ],
      ] + machine.ofDisk, one=true),
  },
}
