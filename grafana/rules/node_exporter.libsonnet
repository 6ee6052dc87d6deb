// Recording rules and alerts for hosts with node_exporter and without a daemon: the limits of the file that
// `disksla limits --textfile` wrote, and the counters node_disk_*. Means over two minutes show that a disk
// ran at its limit, not that it was throttled.
{
  local config = $._config {
    diskslaSelector: $._config.nodeSelector,
    runbookUrl: $._config.nodeRunbookUrl,
    grafanaUrl: '',
  },
  local promql = (import '../promql.libsonnet')(config),
  local text = (import '../alerts/text.libsonnet')(config),
  local machine = (import '../alerts/machine.libsonnet')(config),
  local of = promql.of,

  // -- load -----------------------------------------------------------------------------------

  local rate(counter) = 'rate(' + of('node_disk_' + counter + '_total') + '[' + config.nodeRateWindow + '])',
  // Data writes. The kernel counts an empty flush as a write, too, and no limiter does. All flushes are
  // subtracted, but flushes that wait at the same time are merged: so there are at most as many data writes as
  // pages of 4 KiB. Kernels before 5.5 do not count flushes.
  local data_writes = '(%(writes)s unless %(flushes)s > 0) or (clamp_min(%(writes)s - %(flushes)s, 0) <= %(pages)s) or %(pages)s' % {
    writes: rate('writes_completed'),
    flushes: rate('flush_requests'),
    pages: rate('written_bytes') + ' / 4096',
  },
  // Rates of what a charge is for.
  local rates = {
    read: rate('reads_completed'),
    write: data_writes,
    read_byte: rate('read_bytes'),
    written_byte: rate('written_bytes'),
  },
  // Every law of cost is a set of linear charges (ADR 5). `of_subject` makes a rate of each disk one of the
  // subject that `labels` identify.
  local load(charges, labels, of_subject) = |||
    max without (charge) (sum without (unit) (
      %(charges)s
      * on (%(labels)s, unit) group_left ()
      (
    %(rates)s
      )
    ))
  ||| % {
    charges: of(charges),
    labels: labels,
    rates: std.join('\n    or\n', [
      '    label_replace(' + of_subject(rates[unit]) + ', "unit", "' + unit + '", "", "")'
      for unit in std.objectFields(rates)
    ]),
  },
  local of_disk(vector) = vector,
  // A disk may be in several groups.
  local of_group(vector) =
    'sum without (device) (' + of('disksla_machine_disk_info') + ' * on (' + promql.disk + ') group_left () ('
    + vector + '))',

  local record(level, what) = level + ':node_disk_' + what + config.nodeRateWindow,
  local disk_load = record('instance_device_limit', 'load:ratio_rate'),
  local group_load = record('instance_group_limit', 'load:ratio_rate'),
  local disk_at_limit = record('instance_device_limit', 'load_at_limit:ratio_rate'),
  local group_at_limit = record('instance_group_limit', 'load_at_limit:ratio_rate'),
  // Only while it is at the limit.
  local at_limit(load, excess, labels, of_subject) = |||
    (%(load)s >= %(least)g)
      <= on (%(labels)s) group_left () (1 + %(excess)s)
    and on (%(labels)s)
    %(inflight)s >= %(waiting)g
  ||| % {
    load: load,
    least: config.atLimitLoadRatio,
    labels: labels,
    excess: of(excess),
    inflight: of_subject(rate('io_time_weighted_seconds')),
    waiting: config.atLimitInflight,
  },
  local records = [
    { record: disk_load, expr: load('disksla_limit_charge_seconds', promql.disk, of_disk) },
    { record: group_load, expr: load('disksla_machine_limit_charge_seconds', promql.group, of_group) },
    { record: disk_at_limit, expr: at_limit(disk_load, 'disksla_limit_excess_ratio', promql.disk, of_disk) },
    {
      record: group_at_limit,
      expr: at_limit(group_load, 'disksla_machine_limit_excess_ratio', promql.group, of_group),
    },
  ],

  // -- alerts ---------------------------------------------------------------------------------

  local seconds(duration) =
    local end = std.length(duration) - 1;
    std.parseInt(std.substr(duration, 0, end)) * { s: 1, m: 60, h: 3600 }[duration[end]],
  // The share of a window in which a series exists, which has a sample at each evaluation. It is one of all
  // time: after a start, the first minutes do not count as the whole window.
  local share(vector, window) =
    'clamp_max(count_over_time(%s) / %d, 1)'
    % [vector, seconds(window) / seconds(config.ruleInterval)],
  local share_at_limit(series) =
    share(series + '[' + config.atLimitWindow + ']', config.atLimitWindow) + ' > %g' % config.atLimitShare,
  local described(expr) =
    '(\n' + text.indented(expr) + '\n)\n* on (' + promql.disk
    + ') group_left (serial, model, terms, budget) (\n' + text.indented(promql.one_info('disksla_disk_info', promql.disk))
    + '\n)\n',
  local now(kind, counter, unit, shown) = text.also(
    ' ' + kind + ' now: ', 'rate(node_disk_%s_total{@}[%s])' % [counter, config.nodeRateWindow], unit, shown
  ),
  local ran_at(subject, whose) =
    subject + 'ran at ' + whose + ' ({{ $labels.limit }}) for ' + text.percent + ' of the last '
    + config.atLimitWindow + ', with requests in flight.',

  local at_limit_alert = text.disk_alert(
    'DiskAtLimit',
    'warning',
    config.atLimitFor,
    described(share_at_limit(disk_at_limit)),
    'A disk runs at its limit most of the time.',
    ran_at(text.disk + ' ', 'its limit')
    + text.bought
    + now('Reads', 'reads_completed', 'humanize', '/s.')
    + now('Writes', 'writes_completed', 'humanize', '/s.')
    + now('Read', 'read_bytes', 'humanize1024', 'B/s.')
    + now('Written', 'written_bytes', 'humanize1024', 'B/s.')
  ),
  // Ahead of the alert above, which takes over. With a burst, the load is that of the baseline.
  local load_high_alert = text.disk_alert(
    'DiskLoadHigh',
    'info',
    config.nearFor,
    described(|||
      %(share)s > %(most)g
      unless on (%(disk)s)
      %(at_limit)s
      unless on (%(disk)s)
      %(burst)s
    ||| % {
      share: share(
        '(%s > %s)[%s:%s]' % [disk_load, config.nearLoadRatio, config.nearWindow, config.ruleInterval],
        config.nearWindow
      ),
      most: config.nearShare,
      disk: promql.disk,
      at_limit: share_at_limit(disk_at_limit),
      burst: of('', '__name__=~"disksla_burst_limit_.+"'),
    }),
    'The load of a disk is close to its limit most of the time.',
    text.disk + ' had a load above %g %% of its limit ({{ $labels.limit }}) for ' % (100 * std.parseJson(config.nearLoadRatio))
    + text.percent + ' of the last ' + config.nearWindow + '.'
    + text.bought
  ),
  local machine_alert = text.alert(
    'machine',
    'MachineAtLimit',
    'warning',
    config.atLimitFor,
    machine.of_group(share_at_limit(group_at_limit)),
    'The disks of a machine run at a limit of the machine most of the time.',
    ran_at(machine.group, 'the limit of the machine')
    + ' Disks: ' + text.list('disksla_machine_disk_info{@}', 'device', '{{ .Labels.device }}') + '.'
    + machine.limits
    + ' A larger disk does not help.'
  ),

  nodeExporterRules:: {
    groups: [{
      name: 'disksla.node_exporter',
      interval: config.ruleInterval,
      rules: records + [at_limit_alert, load_high_alert, machine_alert],
    }],
  },
}
