// Annotations of alerts, and queries in them.
function(config) {
  local trimmed = import '../trimmed.libsonnet',

  percent: '{{ $value | humanizePercentage }}',
  duration: '{{ $value | humanizeDuration }}',
  indented(expr): '  ' + std.strReplace(trimmed(expr), '\n', '\n  '),

  // The result of a query, in which `@` stands for matchers of these labels of the alert.
  result(query, names):
    local matchers = std.join(', ', [name + '=%q' for name in names]);
    local arguments = ['$labels.' + name for _ in std.findSubstr('@', query) for name in names];
    'printf `' + std.strReplace(query, '@', matchers) + '` ' + std.join(' ', arguments) + ' | query',

  // The value of a metric, or of a query with `@`, and text around it; empty without a sample.
  also(before, metric, unit, after, names):
    local query = if std.findSubstr('@', metric) == [] then metric + '{@}' else metric;
    '{{ range ' + self.result(query, names) + ' }}'
    + before + '{{ . | value | ' + unit + ' }}' + after + '{{ end }}',

  // All samples of a query in the order of a label, each as `shown`, with commas between them.
  list(query, names, label, shown):
    '{{ range $index, $each := ' + self.result(query, names) + ' | sortByLabel "' + label + '" }}'
    + '{{ if $index }}, {{ end }}' + shown + '{{ end }}',

  alert(name, severity, wait, expr, summary, description): {
    alert: name,
    expr: expr,
    'for': wait,
    labels: { severity: severity },
    annotations: {
      summary: summary,
      description: description,
      [if config.runbookUrl != '' then 'runbook_url']:
        config.runbookUrl + '#' + std.asciiLower(name),
    },
  },
}
