// Annotations of alerts, and queries in them.
local uids = import '../uids.libsonnet';

function(config) {
  local contains = import '../contains.libsonnet',
  local trimmed = import '../trimmed.libsonnet',
  local instance = '{{ $labels.instance }}',
  local variable(name) = 'var-' + name + '={{ $labels.' + name + ' | urlquery }}',
  // Prometheus adds its external labels, such as a cluster, after the annotations.
  local cluster =
    '{{ with or $labels.cluster $externalLabels.cluster }}&var-cluster={{ . | urlquery }}{{ end }}',
  local dashboards = {
    disk: uids.disk + '?' + std.join('&', [variable(name) for name in ['job', 'instance', 'device']]) + cluster,
    machine: uids.fleet + '?' + std.join('&', [variable(name) for name in ['job', 'instance']]) + cluster,
    host: self.machine,
  },
  local identities = {
    disk: config.hostLabels + ['device'],
    machine: config.hostLabels + ['group'],
  },

  percent: '{{ $value | humanizePercentage }}',
  duration: '{{ $value | humanizeDuration }}',
  indented(expr): '  ' + std.strReplace(trimmed(expr), '\n', '\n  '),

  // The result of a query. `@` stands for matchers of the labels that identify the subject of the
  // alert, and `#` for the value of the label `resource`.
  result(query):
    local arguments = [
      { '@': '$of', '#': '$labels.resource' }[each]
      for each in std.stringChars(query)
      if each == '@' || each == '#'
    ];
    'printf `' + std.strReplace(std.strReplace(query, '@', '%s'), '#', '%q') + '` '
    + std.join(' ', arguments) + ' | query',

  // The value of a metric, or of a query with `@`, and text around it; empty without a sample.
  also(before, metric, unit, after):
    local query = if contains(metric, '@') then metric else metric + '{@}';
    '{{ range ' + self.result(query) + ' }}'
    + before + '{{ . | value | ' + unit + ' }}' + after + '{{ end }}',

  // All samples of a query in the order of a label, each as `shown`, with commas between them.
  list(query, label, shown):
    '{{ range $index, $each := ' + self.result(query) + ' | sortByLabel "' + label + '" }}'
    + '{{ if $index }}, {{ end }}' + shown + '{{ end }}',

  // The disk of an alert, and what it is.
  disk: 'Disk {{ $labels.device }}{{ with $labels.persistentvolumeclaim }}'
        + ' (claim {{ $labels.namespace }}/{{ . }}){{ end }} on {{ $labels.instance }}',
  local about = ' Serial {{ or $labels.serial "unknown" }}{{ with $labels.terms }}, terms {{ . | reReplaceAll "^custom$" "written out" }}{{ end }}'
                + '{{ range ' + self.result('disksla_mount_info{@}') + ' | sortByLabel "mountpoint" }}'
                + ', mounted at {{ .Labels.mountpoint }}{{ end }}.',
  disk_alert(name, severity, wait, expr, summary, description)::
    self.alert('disk', name, severity, wait, expr, summary, description + about),

  // The limits of a disk, by its label `budget`.
  local bought(kind, unit, shown) =
    self.also(' Bought: ', 'disksla_limit_' + kind, 'humanize' + unit, shown),
  bought: '{{ if eq (or $labels.budget "") "separate" }}'
          + bought('read_iops', '', ' reads/s.')
          + bought('write_iops', '', ' writes/s.')
          + '{{ else }}'
          + bought('read_iops', '', ' IOPS.')
          + '{{ end }}'
          + bought('read_bytes_per_second', '1024', 'B/s.'),

  // An alert on a `disk`, a `machine` or a `host`. The first sentence of the description is all that
  // many phones show. `link_to` is the instance of the daemon that has the runbook.
  alert(of, name, severity, wait, expr, summary, description, link_to=instance):
    local matchers = std.join(', ', [label + '=%q' for label in identities[of]]);
    // vmalert takes a label that is absent for nothing, not for an empty text.
    local values = std.join(' ', ['(or $labels.' + label + ' "")' for label in identities[of]]);
    {
      alert: name,
      expr: expr,
      'for': wait,
      labels: { severity: severity },
      annotations: {
        summary: summary,
        description:
          (if contains(description, '$of') then '{{ $of := printf `' + matchers + '` ' + values + ' }}'
           else '') + description,
        [if config.runbookUrl != '' then 'runbook_url']:
          std.strReplace(config.runbookUrl, instance, link_to) + '#' + name,
        [if config.grafanaUrl != '' then 'dashboard_url']:
          config.grafanaUrl + '/d/' + dashboards[of],
      },
    },
}
