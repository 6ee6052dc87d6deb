// The story of one disk, on raw metrics: what it was asked for, what it gave, and why.
local state = import '../state.libsonnet';

{
  grafanaDashboards+:: {
    'disk.json':
      local config = $._config;
      local lib = (import 'lib.libsonnet')(config);
      local disk = lib.disk;
      local rate(metric, more='') =
        'rate(disksla_' + metric + '{' + disk + more + '}[$__rate_interval])';
      local sum(expr) = 'sum by (' + lib.perDisk + ') (' + expr + ')';
      local ratio(above, below) = above + ' / (' + below + ' > 0)';
      // Of the time that was assessed; nothing where none was.
      local share(verdict) = ratio(
        sum(rate('verdict_seconds_total', ', verdict="' + verdict + '"')),
        sum(rate('verdict_seconds_total'))
      );
      local gauge(metric, more='') = 'disksla_' + metric + '{' + disk + more + '}';
      local quantile(q, metric) =
        'histogram_quantile(' + q + ', sum by (' + lib.perDisk + ', le) ('
        + rate(metric + '_bucket') + '))';
      local mean(kind) =
        rate(kind + '_time_seconds_total') + ' / ' + rate(kind + 's_completed_total') + ' > 0';

      local said = 'floor(\n%s)' % state.expr(
        share,
        explained=sum(rate('throttled_seconds_total', ', limit!="unknown"')) + ' > 0',
        spent='min by (%s) (%s) < %g'
              % [lib.perDisk, lib.creditsLeft('_upper_bound'), config.creditsEmptyShare],
        noticeable=config.noticeableShare,
        disk=lib.perDisk
      );
      // Seconds of some verdicts within the chosen time.
      local seconds(verdicts) =
        sum('increase(disksla_verdict_seconds_total{%s, verdict=~"%s"}[$__range])'
            % [disk, verdicts]);

      // Observed mean, peak of 100 ms, promise, and what credits allow.
      local flow(caption, kind, unit, observed, suffix) =
        lib.lines(caption, |||
          Filled: the mean rate. Dotted: the highest 100 ms within 60 s, which the mean hides.
          Dashed: what the terms promise, and above it what burst credits allow. Peaks at the
          promise with the mean far below it are bursts that the limiter cuts.
        |||, unit, [
          lib.query(rate(observed), 'observed'),
          lib.query(gauge('peak_' + kind + suffix), 'peak of 100 ms'),
          lib.query(gauge('limit_' + kind + suffix), 'promised'),
          lib.query(gauge('burst_limit_' + kind + suffix), 'while credits last'),
        ])
        + lib.size(8, 8)
        + lib.noData('nothing observed')
        + lib.overrides([
          lib.filled('observed', 'blue'),
          lib.dotted('peak of 100 ms', 'light-blue'),
          lib.dashed('promised', 'green'),
          lib.dashed('while credits last', 'purple'),
        ]);

      // Of reads and writes together: limits that both share, and the rate at which it was held.
      local together(caption, unit, reads, writes, suffix) =
        lib.lines(caption, |||
          Filled: reads and writes together. Dotted: the rate at which the disk was last seen held,
          whoever told us its terms. A ceiling well below the promise is a disk smaller than you
          think, or evidence for the provider. Dashed: the promise, where reads and writes share
          one.
        |||, unit, [
          lib.query(rate(reads) + ' + ' + rate(writes), 'observed'),
          lib.query(gauge('observed_ceiling' + suffix), 'observed ceiling'),
          lib.query(
            '%s and on (%s) disksla_disk_info{%s, budget=~"sum|time_shared"}'
            % [gauge('limit_read' + suffix), lib.perDisk, disk],
            'promised, shared'
          ),
        ])
        + lib.size(8, 8)
        + lib.noData('nothing observed')
        + lib.overrides([
          lib.filled('observed', 'blue'),
          lib.dotted('observed ceiling', 'orange'),
          lib.dashed('promised, shared', 'green'),
        ]);

      local latency(caption, kind) =
        lib.heatmap(
          caption, |||
            Each column is a moment, each row a range of latency, a stronger colour is more requests
            per second. Means of windows, so single slow requests are hidden among many. The rows'
            bounds include what providers promise (0.5, 1, 3 and 20 ms); above, the promise is a
            line. A band that moves up with the load is queueing at a limit.
          |||, 's', [
            lib.buckets('sum by (le) (' + rate(kind + '_latency_seconds_bucket') + ')'),
          ]
        ) + lib.noData('no ' + kind + 's');

      // The promised latency becomes the label `le` by which its bucket is found.
      local within(kind) = |||
        (
          sum by (%(perDisk)s, le) (%(buckets)s)
          and on (%(perDisk)s, le) count_values by (%(perDisk)s) ("le", %(promised)s)
        ) / ignoring (le) (%(all)s > 0)
      ||| % {
        perDisk: lib.perDisk,
        buckets: rate(kind + '_latency_seconds_bucket'),
        promised: gauge('limit_latency_seconds'),
        all: sum(rate(kind + '_latency_seconds_count')),
      };

      local about = 'The story of one disk: is it me, or the disk?';
      lib.dashboard(lib.uids.disk, 'disksla / Disk', about, [
        [
          lib.stat('Is it me or the disk?', |||
            What was said of the disk in the last moment of the chosen time. Yellow, orange and
            purple: the disk does what was sold, and the load wants more. Red: the disk gives less
            than was sold. Green: look for the cause elsewhere.
          |||, 'none', [lib.now(said)])
          + lib.inWords + lib.size(8, 5) + lib.noData('this disk was not watched then'),
          lib.timeline('What was said of it, over time', |||
            The same words over time; where several hold, the worst. A state is told from %g %% of
            the time on.
          ||| % (config.noticeableShare * 100), [lib.query(said, '{{device}}')])
          + lib.size(16, 5) + lib.noData('this disk was not watched then'),
        ],
        [
          lib.stat('Sold as', |||
            The terms that the disk is held against; none if the configuration names none, and then
            only the observed ceiling can be told.
          |||, 'none', [lib.now(gauge('disk_info'), '{{terms}}')])
          + lib.asName + lib.noData('unknown disk'),
          lib.stat('Mounted at', |||
            Mount points of the disk and its partitions.
          |||, 'none', [lib.now(gauge('disk_info', ', mountpoint!=""'), '{{mountpoint}}')])
          + lib.asName + lib.noData('not mounted: used raw, or below LVM'),
          lib.stat('Serial number', |||
            By which the provider finds the disk; attach it to a ticket.
          |||, 'none', [lib.now(gauge('disk_info', ', serial!=""'), '{{serial}}')])
          + lib.asName + lib.noData('the disk tells none'),
          lib.stat('Promise kept', |||
            Of the seconds in which the promise could be proven (met, throttled or below) within
            the chosen time, the share that was not below it.
          |||, 'percentunit', [
            lib.now('1 - ' + ratio(seconds('below'), seconds('met|throttled|below'))),
          ])
          + lib.noData('not put to the proof')
          + lib.decimals(2) + lib.steps([[null, 'red'], [config.dashboardCompliance, 'green']]),
          lib.stat('Held at a limit', |||
            Share of the chosen time in which the disk was held at a limit while requests waited. A
            little is what bursts look like; much means the disk is too small for the load.
          |||, 'percentunit', [lib.now(seconds('throttled') + ' / ' + seconds('.+'))])
          + lib.noData('not watched')
          + lib.decimals(1)
          + lib.steps([[null, 'green'], [config.noticeableShare, 'orange']]),
          lib.stat('Credits left', |||
            Estimate of the burst credits left, of a full bucket. The bounds stand in the panel of
            credits.
          |||, 'percentunit', [lib.query(lib.creditsLeft(), '{{resource}}')])
          + lib.noData('no credits in these terms')
          + lib.steps([[null, 'red'], [config.creditsEmptyShare, 'orange'], [0.25, 'green']]),
        ],

        lib.row('What it was asked for, and what it gave'),
        [
          lib.lines('Time by verdict', |||
            Shares of time by what was said of each 100 ms. Unproven: it was asked for less than
            the promise and served it. Met: at or above the promise. Throttled: held at a limit.
            Below: gave less than promised. A gap to 100 % was not assessed.
          |||, 'percentunit', [
            lib.query('sum by (verdict) (' + rate('verdict_seconds_total') + ')', '{{verdict}}'),
          ])
          + lib.stacked + lib.byVerdict + lib.range(0, 1) + lib.noData('not watched'),
          lib.lines('Load against the promise', |||
            What the windows of 100 ms used of the promise: half of them less than the lower line,
            99 of 100 less than the upper one. At 100 % the disk is exactly at the promise. An
            upper line at the promise and a lower one far below it: the load comes in bursts.
          |||, 'percentunit', [
            lib.query(quantile('0.5', 'window_load_ratio'), 'half of the windows'),
            lib.query(quantile('0.95', 'window_load_ratio'), '95 of 100'),
            lib.query(quantile('0.99', 'window_load_ratio'), '99 of 100'),
          ])
          + lib.lineAt(1, 'orange') + lib.noData('nothing is promised, or it was idle'),
        ],
        [
          flow('Reads', 'read', 'iops', 'reads_completed_total', '_iops'),
          flow('Writes', 'write', 'iops', 'writes_completed_total', '_iops'),
          together(
            'Requests together, and the ceiling',
            'iops',
            'reads_completed_total',
            'writes_completed_total',
            '_iops'
          ),
        ],
        [
          flow('Bandwidth of reads', 'read', 'Bps', 'read_bytes_total', '_bytes_per_second'),
          flow('Bandwidth of writes', 'written', 'Bps', 'written_bytes_total', '_bytes_per_second'),
          together(
            'Bandwidth together, and the ceiling',
            'Bps',
            'read_bytes_total',
            'written_bytes_total',
            '_bytes_per_second'
          ),
        ],

        lib.row('Latency'),
        [
          lib.lines('Latency against the promise', |||
            Mean and 99th percentile of what requests took, queueing included; dashed: what the
            terms promise. Above the promise while throttled, it is your own queue. Above it while
            there is little load, it is the disk.
          |||, 's', [
            lib.query(mean('read'), 'reads, mean'),
            lib.query(mean('write'), 'writes, mean'),
            lib.query(quantile('0.99', 'read_latency_seconds'), 'reads, 99 of 100'),
            lib.query(quantile('0.99', 'write_latency_seconds'), 'writes, 99 of 100'),
            lib.query(gauge('limit_latency_seconds'), 'promised'),
          ])
          + lib.noData('no requests') + lib.overrides([
            lib.filled('reads, mean', 'blue'),
            lib.filled('writes, mean', 'purple'),
            lib.plain('reads, 99 of 100', 'light-blue'),
            lib.plain('writes, 99 of 100', 'light-purple'),
            lib.dashed('promised', 'green'),
          ]),
          lib.lines('Requests within the promised latency', |||
            Of all requests, the share that took no longer than the terms promise. Not drawn if the
            promise is none of the bounds of the histogram.
          |||, 'percentunit', [
            lib.query(within('read'), 'reads'),
            lib.query(within('write'), 'writes'),
          ])
          + lib.range(0, 1) + lib.noData('no latency is promised, or no requests') + lib.coloured({
            reads: 'blue',
            writes: 'purple',
          }),
        ],
        [
          latency('How long reads took', 'read'),
          latency('How long writes took', 'write'),
        ],

        lib.row('Credits'),
        [
          lib.lines('Burst credits left', |||
            The guest cannot see its credits: the truth lies within the band whatever happened
            before, the line is the estimate. Of a full bucket; at 0 the disk falls back to its
            base limit.
          |||, 'percentunit', [
            lib.query(lib.creditsLeft(), '{{resource}}'),
            lib.query(lib.creditsLeft('_lower_bound'), '{{resource}} at least'),
            lib.query(lib.creditsLeft('_upper_bound'), '{{resource}} at most'),
          ])
          + lib.size(16, 8) + lib.range(0, 1) + lib.noData('no credits in these terms')
          + lib.overrides([
            lib.override('byRegexp', '/ at (least|most)$/', {
              'custom.lineWidth': 0,
              'custom.fillOpacity': 0,
              'custom.showPoints': 'never',
            }),
          ] + [
            lib.named(resource + ' at most', {
              'custom.fillBelowTo': resource + ' at least',
              'custom.fillOpacity': 20,
            })
            for resource in ['iops', 'bytes', 'service_seconds']
          ]),
          lib.lines('Time to empty', |||
            How long the credits last if the disk goes on as in that second. Nothing is drawn while
            they do not get fewer.
          |||, 's', [lib.query(gauge('burst_exhaustion_seconds') + ' < Inf', '{{resource}}')])
          + lib.size(8, 8) + lib.noData('credits are not draining'),
        ],

        lib.row('What throttling did to the host'),
        [
          lib.lines('Held, by limit', |||
            Share of time in which the disk was held while requests waited, by the limit that held
            it. Unknown: a flat rate that no terms explain.
          |||, 'percentunit', [lib.query(rate('throttled_seconds_total'), '{{limit}}')])
          + lib.stacked + lib.range(0, 1) + lib.size(8, 8) + lib.noData('not watched')
          + lib.coloured({
            iops: 'orange',
            bandwidth: 'purple',
            unknown: 'yellow',
          }),
          lib.lines('Requests in flight, and held back', |||
            Requests at the disk now, and how many of them on average only waited because the disk
            was throttled. If nearly all of them wait, more requests at once bring nothing.
          |||, 'short', [
            lib.query(gauge('inflight'), 'in flight'),
            lib.query(rate('throttle_wait_seconds_total'), 'held back'),
          ]) + lib.noData('not watched') + lib.size(8, 8) + lib.coloured({
            'in flight': 'blue',
            'held back': 'orange',
          }),
          lib.lines('iowait and pressure while throttled', |||
            CPUs that stood in iowait, and share of time in which some or all tasks of the host
            stood still for I/O (PSI), that fell into throttled windows of this disk. By
            correlation; asynchronous I/O causes next to none, so nothing here does not mean no
            harm.
          |||, 'percentunit', [
            lib.query(rate('throttled_iowait_seconds_total'), 'iowait, of one CPU'),
            lib.query(rate('throttled_pressure_seconds_total'), 'tasks stalled: {{kind}}'),
          ]) + lib.noData('nobody waited') + lib.size(8, 8),
        ],
      ], one=true),
  },
}
