// Parts of dashboards: variables, links, panels, and the layout on the grid, as plain objects of
// Grafana's JSON. Colours are names of Grafana's palette, which suit the light and the dark theme.
local source = { type: 'prometheus', uid: '${datasource}' };

local state = import '../state.libsonnet';
local trimmed = import '../trimmed.libsonnet';
local uids = import '../uids.libsonnet';

// Verdicts, by the label `verdict`, in the words of the pages of the daemon.
local verdicts = {
  idle: { color: 'gray', text: 'idle' },
  unproven: { color: 'blue', text: 'OK' },
  met: { color: 'green', text: 'promise kept' },
  throttled: { color: 'orange', text: 'throttled' },
  below: { color: 'red', text: 'less than promised' },
  stalled: { color: 'dark-red', text: 'hung' },
};

// Limits that throttle, by the label `limit`.
local limits = {
  iops: { color: 'orange', text: 'IOPS of the disk' },
  bandwidth: { color: 'purple', text: 'bandwidth of the disk' },
  machine_iops: { color: 'dark-orange', text: 'IOPS of the machine' },
  machine_bandwidth: { color: 'dark-purple', text: 'bandwidth of the machine' },
  unknown: { color: 'yellow', text: 'unknown' },
};

local mapping(rows) = [{
  type: 'value',
  options: {
    [std.toString(row.value)]: { index: row.value, text: row.text, color: row.color }
    for row in rows
  },
}];

// Mappings for numbers whose integer part is the state.
local ranges(rows) = [
  {
    type: 'range',
    options: {
      from: row.value,
      to: row.value + 0.999,
      result: { index: row.value, text: row.text, color: row.color },
    },
  }
  for row in rows
];

// -- overrides ----------------------------------------------------------------------------------

local override(id, options, properties) = {
  matcher: { id: id, options: options },
  properties: [{ id: key, value: properties[key] } for key in std.objectFields(properties)],
};
local named(name, properties) = override('byName', name, properties);
local colour(name) = { mode: 'fixed', fixedColor: name };
local styled(pattern, color, fill, dash, width) = override('byRegexp', pattern, {
  color: colour(color),
  'custom.lineStyle': { fill: fill, dash: dash },
  'custom.lineWidth': width,
  'custom.fillOpacity': 0,
});

// -- panels -------------------------------------------------------------------------------------

local thresholds(steps) = {
  mode: 'absolute',
  steps: [{ color: step[1], value: step[0] } for step in steps],
};

// Decimals by unit, so that rounding noise is 0. Axes of zeros end at the soft maximum.
local decimals = { percentunit: 1, s: 1, iops: 1, binBps: 1, bytes: 1, short: 0, none: 0 };
local soft_max = { percentunit: 0.1, s: 0.001, iops: 10, binBps: 1048576, bytes: 4096, short: 1 };

// Colours of series without one of their own: no red or orange, which mean that something is wrong.
local neutral = { mode: 'shades', fixedColor: 'blue' };

// Absence is no alarm: the text of `noValue`, in the colour of text.
local calm = { fieldConfig+: { defaults+: {
  local defaults = self,
  mappings+: [{
    type: 'special',
    options: {
      match: 'null+nan',
      result: { index: 99, text: defaults.noValue, color: 'text' },
    },
  }],
} } };

local refId(index) = std.char(std.codepoint('A') + index);

local panel(type, title, description, targets) = {
  type: type,
  title: title,
  description: std.strReplace(trimmed(description), '\n', ' '),
  datasource: source,
  targets: std.mapWithIndex(function(index, target) target { refId: refId(index) }, targets),
  fieldConfig: {
    defaults: {
      unit: 'short',
      decimals: std.get(decimals, self.unit, 0),
      noValue: 'no data',
      thresholds: thresholds([[null, 'green']]),
      mappings: [],
    },
    overrides: [],
  },
  gridPos: { w: 12, h: 8 },
  // The rate interval of the present does not depend on the selected time range.
  [if std.length([target for target in targets if !target.instant]) == 0 then 'maxDataPoints']: 100000,
};

// Place rows of panels on a grid 24 wide, from left to right. A row is as high as its highest panel.
local placed_rows(rows, y=0) = std.foldl(
  function(done, row) done {
    y: done.y + std.foldl(function(most, item) std.max(most, item.gridPos.h), row, 0),
    panels: done.panels + std.foldl(
      function(line, item) line {
        x: line.x + item.gridPos.w,
        panels: line.panels + [item { gridPos+: { x: line.x, y: done.y } }],
      }, row, { x: 0, panels: [] }
    ).panels,
  }, rows, { y: y, panels: [] }
).panels;

// The panels of a collapsed row are inside it; each list of `rows` is a line of panels.
local placed(rows) = std.map(
  function(item)
    if std.objectHas(item, 'inner') then {
      [key]: item[key]
      for key in std.objectFields(item)
      if key != 'inner'
    } + { panels: placed_rows(item.inner, item.gridPos.y + 1) } else item,
  placed_rows(rows)
);
local numbered(panels) = std.mapWithIndex(
  function(index, item) item {
    id: 100 * index + 1,
    [if item.type == 'row' then 'panels']: std.mapWithIndex(
      function(place, inner) inner { id: 100 * index + 2 + place }, item.panels
    ),
  }, panels
);

function(config) {
  local promql = (import '../promql.libsonnet')(config),

  uids: uids,
  promql: promql,
  stateRanges: ranges(state.states),
  mapping: mapping,
  override: override,
  named: named,
  dashed(name, color): styled('/^' + name + '/', color, 'dash', [8, 4], 1),
  dotted(name, color): styled('/^' + name + '/', color, 'dot', [0, 6], 3),
  filled(name, color): named(name, { color: colour(color), 'custom.fillOpacity': 20 }),
  plain(name, color): named(name, { color: colour(color), 'custom.fillOpacity': 0 }),

  // Why a panel may be empty whose series the smallest profile does not have.
  lean: 'the profile is lean',

  // Matchers of all queries; those of clusters match targets without this label too.
  cluster: 'cluster=~"$cluster"',
  jobs: self.cluster + ', job=~"$job"',
  host: self.jobs + ', instance=~"$instance"',
  disk: self.host + ', device=~"$device"',
  // Matchers of claims of Kubernetes, which match disks without one too.
  claim: std.join(', ', [label + '=~"$' + label + '"' for label in promql.claim]),
  // Labels that identify a disk.
  perDisk: promql.disk,

  creditsLeft(bound=''):
    'disksla_burst_credits' + bound + '{' + $.disk + '}'
    + ' / disksla_burst_credits_capacity{' + $.disk + '}',

  // -- queries ----------------------------------------------------------------------------------

  query(expr, legend=''): {
    datasource: source,
    expr: trimmed(expr),
    legendFormat: legend,
    range: true,
    instant: false,
  },
  now(expr, legend=''): self.query(expr, legend) + { range: false, instant: true },
  // A column of a table. The expression must aggregate by the labels that it keeps: if two columns
  // differ in a label that both have, every disk gets two rows.
  column(expr): self.now(expr) + { format: 'table' },
  // Buckets of a histogram; absent at moments without requests, where cells would be undefined.
  buckets(rate): self.query(
    'sum by (le) (' + rate + ') and on () sum(' + rate + ') > 0', '{{le}}'
  ) + { format: 'heatmap' },

  // Number of series of `expr`; 0 if there are only series of `all`, and no value if there are none.
  counted(expr, all): self.now('count(' + expr + ') or 0 * count(' + all + ')'),

  // -- kinds of panels; `+` adds what is special ---------------------------------------------------

  lines(title, description, unit, targets): panel('timeseries', title, description, targets) + {
    fieldConfig+: { defaults+: { unit: unit, min: 0, color: neutral, custom: {
      axisSoftMax: soft_max[unit],
      drawStyle: 'line',
      lineWidth: 1,
      fillOpacity: 10,
      showPoints: 'auto',
      spanNulls: false,
    } } },
    options: {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: ['lastNotNull', 'max'] },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  },

  // A level of credits with its bounds; `left` is a function that returns the expression of a bound.
  bounds(title, description, left): self.lines(title, description, 'percentunit', [
    self.query(left(), '{{resource}}'),
    self.query(left('_lower_bound'), '{{resource}} at least'),
    self.query(left('_upper_bound'), '{{resource}} at most'),
  ]) + self.size(16, 8) + self.range(0, 1) + self.overrides([
    override('byRegexp', '/ at (least|most)$/', {
      'custom.lineWidth': 0,
      'custom.fillOpacity': 0,
      'custom.showPoints': 'never',
    }),
  ] + [
    named(resource + ' at most', {
      'custom.fillBelowTo': resource + ' at least',
      'custom.fillOpacity': 20,
    })
    for resource in ['iops', 'bytes', 'service_seconds']
  ]),

  // Stacked areas without gaps between their colours.
  stacked: { fieldConfig+: { defaults+: { custom+: {
    lineWidth: 0,
    fillOpacity: 70,
    showPoints: 'never',
    stacking: { mode: 'normal', group: 'A' },
  } } } },

  // Lines alone: areas of many series cover each other.
  unfilled: { fieldConfig+: { defaults+: { custom+: { fillOpacity: 0 } } } },

  // A horizontal line at a value.
  lineAt(value, color): { fieldConfig+: { defaults+: {
    thresholds: thresholds([[null, 'green'], [value, color]]),
    custom+: { thresholdsStyle: { mode: 'dashed' } },
  } } },

  stat(title, description, unit, targets): panel('stat', title, description, targets) + calm + {
    gridPos: { w: 4, h: 4 },
    fieldConfig+: { defaults+: { unit: unit } },
    options: {
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
      colorMode: 'value',
      graphMode: 'none',
      justifyMode: 'auto',
      orientation: 'auto',
      textMode: 'auto',
    },
  },

  // A stat that shows the values of a label; each is a row of a table.
  text(title, description, expr, label): self.stat(
    title, description, 'none', [self.now(expr) + { format: 'table' }]
  ) + {
    fieldConfig+: { defaults+: { color: colour('text') } },
    options+: {
      reduceOptions: { calcs: [], fields: '/^' + label + '$/', values: true },
      textMode: 'value',
    },
  },

  // A stat that shows the text and the colour of a state.
  asState: {
    fieldConfig+: { defaults+: { mappings+: mapping(state.states), color: { mode: 'thresholds' } } },
    options+: { colorMode: 'background', textMode: 'value' },
  },

  // Green at 0, and this colour from 1 on.
  alarming(color): self.steps([[null, 'green'], [1, color]]),

  timeline(title, description, targets): panel('state-timeline', title, description, targets) + {
    fieldConfig+: { defaults+: {
      mappings: mapping(state.states),
      // With `thresholds` and merged values, Grafana ignores the colours and texts of mappings.
      color: { mode: 'fixed' },
      custom: { lineWidth: 0, fillOpacity: 80 },
    } },
    options: {
      alignValue: 'left',
      mergeValues: true,
      rowHeight: 0.9,
      showValue: 'auto',
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'single', sort: 'none' },
    },
  },

  heatmap(title, description, unit, targets): panel('heatmap', title, description, targets) + {
    gridPos: { w: 12, h: 12 },
    fieldConfig+: { defaults+: { unit: unit, custom: { scaleDistribution: { type: 'linear' } } } },
    options: {
      calculate: false,
      cellGap: 1,
      cellValues: { unit: 'reqps' },
      color: {
        mode: 'scheme',
        scheme: 'Oranges',
        scale: 'exponential',
        exponent: 0.5,
        steps: 64,
        fill: 'dark-orange',
        reverse: false,
      },
      exemplars: { color: 'red' },
      filterValues: { le: 1e-9 },
      legend: { show: true },
      rowsFrame: { layout: 'auto' },
      showValue: 'never',
      tooltip: { mode: 'single', showColorScale: true, yHistogram: true },
      yAxis: { axisPlacement: 'left', reverse: false, unit: unit },
    },
  },

  // A table with a row for each combination of `labels`. `columns` are the captions of the values,
  // one for each query. `details` are labels that only one query has. Other labels are hidden.
  // `order` lists labels, captions and details as they are shown; a phone shows the first two.
  table(title, description, labels, columns, targets, details=[], order=labels + columns + details):
    local values = ['Value #' + refId(index) for index in std.range(0, std.length(columns) - 1)];
    local field = { [columns[index]]: values[index] for index in std.range(0, std.length(columns) - 1) };
    local shown = [std.get(field, name, name) for name in order];
    panel('table', title, description, targets) + calm + {
      gridPos: { w: 24, h: 10 },
      fieldConfig+: { defaults+: {
        noValue: '–',
        custom: { align: 'auto', filterable: false },
      } },
      options: {
        cellHeight: 'sm',
        showHeader: true,
        footer: { show: false, countRows: false, fields: '', reducer: ['sum'] },
      },
      transformations: [
        { id: 'merge', options: {} },
        { id: 'filterFieldsByName', options: { include: { names: shown } } },
        { id: 'organize', options: {
          excludeByName: {},
          indexByName: std.foldl(
            function(places, name) places { [name]: std.length(places) }, shown, {}
          ),
          renameByName: {
            [values[index]]: columns[index]
            for index in std.range(0, std.length(columns) - 1)
          },
        } },
      ],
    },

  // `name` is the text beside a bar, which Grafana hides for a single series otherwise.
  bars(title, description, unit, name, targets): panel('bargauge', title, description, targets) + calm + {
    fieldConfig+: { defaults+: { unit: unit, min: 0, displayName: name } },
    options: {
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
      displayMode: 'basic',
      orientation: 'horizontal',
      showUnfilled: true,
      valueMode: 'color',
      minVizHeight: 16,
      minVizWidth: 8,
    },
  },

  row(title): [
    { type: 'row', title: title, collapsed: false, panels: [], gridPos: { w: 24, h: 1 } },
  ],
  // A row for what many disks do not have; `rows` are read when it is opened.
  collapsed(title, rows): [
    { type: 'row', title: title, collapsed: true, inner: rows, gridPos: { w: 24, h: 1 } },
  ],

  size(w, h): { gridPos: { w: w, h: h } },
  noData(text): { fieldConfig+: { defaults+: { noValue: text } } },
  range(min, max): { fieldConfig+: { defaults+: { min: min, max: max } } },
  unit(unit): { fieldConfig+: { defaults+: { unit: unit } } },
  sortedBy(column, desc=false): { options+: { sortBy: [{ displayName: column, desc: desc }] } },
  decimals(number): { fieldConfig+: { defaults+: { decimals: number } } },
  // Colours, each from its value on.
  steps(steps): { fieldConfig+: { defaults+: { thresholds: thresholds(steps) } } },
  // Colours of the text of a column, each from its value on.
  byValue(steps): {
    thresholds: thresholds(steps),
    color: { mode: 'thresholds' },
    'custom.cellOptions': { type: 'color-text' },
  },
  overrides(overrides): { fieldConfig+: { overrides+: overrides } },
  // Colours by the name of the series.
  coloured(colours): self.overrides([
    named(name, { color: colour(colours[name]) })
    for name in std.objectFields(colours)
  ]),
  // Series whose name is the value of a label get the text and colour of this value.
  local worded(values) = self.overrides([
    named(name, { displayName: values[name].text, color: colour(values[name].color) })
    for name in std.objectFields(values)
  ]),
  byVerdict: worded(verdicts),
  byLimit: worded(limits),
  // Series whose name is the number of a state get its text and colour.
  byState: self.overrides([
    named(std.toString(each.value), { displayName: each.text, color: colour(each.color) })
    for each in state.states
  ]),

  // Link from a row or a series to the dashboard of its disk, for the same time range. The selected
  // jobs are passed on, and the dashboard finds the job of the disk among them.
  local toDisk(field) = {
    title: 'Show this disk',
    url: '/d/' + uids.disk + '?' + std.join('&', [
      '${datasource:queryparam}',
      '${cluster:queryparam}',
      '${job:queryparam}',
      'var-instance=${' + field + '.instance}',
      'var-device=${' + field + '.device}',
      '${__url_time_range}',
    ]),
  },
  rowToDisk(column='device'): self.overrides([named(column, { links: [toDisk('__data.fields')] })]),
  seriesToDisk: { fieldConfig+: { defaults+: { links: [toDisk('__field.labels')] } } },

  // -- dashboards -------------------------------------------------------------------------------

  local variable(name, query, many, all='.+') = {
    name: name,
    label: name,
    type: 'query',
    datasource: source,
    query: { query: query, refId: 'variable-' + name },
    refresh: 2,
    sort: 5,
    regex: '',
    hide: 0,
    multi: many,
    includeAll: many,
    allValue: all,
    current: if many then { selected: true, text: ['All'], value: ['$__all'] } else {},
    options: [],
  },

  // Targets and disks without such a label are among all.
  local optional(name, metric) = variable(name, 'label_values(' + metric + ', ' + name + ')', true, all='.*'),
  // Series that have hosts and disks. While all claims are selected, these are all disks.
  local disks(matchers) =
    '{__name__=~"disksla_disk_info|disksla_kubernetes_volume_info", ' + matchers + '}',

  local annotation(name, colour) = {
    name: name,
    datasource: source,
    enable: true,
    hide: false,
    iconColor: colour,
    step: '60s',
    titleFormat: name,
    textFormat: '{{instance}} {{device}}',
  },
  // When problems of the disk began and ended: where they are a hundredth of two minutes, as in the
  // log of the daemon; a hang at once.
  local throttled(limits) = 'throttled_seconds_total{%s, %s}' % [$.disk, limits],
  local verdict(name) = 'verdict_seconds_total{%s, verdict="%s"}' % [$.disk, name],
  local changed(metric) = 'changes(disksla_limit_%s{%s}[2m]) > 0' % [metric, $.disk],
  local events = [
    annotation(event[0], event[1]) {
      expr: 'sum by (%s) (increase(disksla_%s[2m])) > %s' % [$.perDisk, event[2], event[3]],
    }
    for event in [
      ['You: throttled', 'orange', throttled(promql.by_disk), 1.2],
      ['The machine: throttled', 'dark-orange', throttled(promql.by_machine), 1.2],
      ['Unknown limit', 'yellow', throttled('limit="unknown"'), 1.2],
      ['The disk: slow', 'light-red', 'slow_seconds_total{%s}' % $.disk, 1.2],
      ['The disk: less than promised', 'red', verdict('below'), 1.2],
      ['The disk: hung', 'dark-red', verdict('stalled'), 0],
    ]
  ] + [annotation('Limits changed', 'blue') {
    expr: changed('read_iops') + ' or ' + changed('read_bytes_per_second'),
  }],

  // `rows` are lists of panels, from left to right. `one`: the dashboard shows a single disk. `claims`:
  // disks can be selected by their claim.
  dashboard(uid, title, description, rows, one=false, claims=true, from='now-1h'): {
    local selected = if claims then ', ' + $.claim else '',

    uid: uid,
    title: title,
    description: description,
    tags: config.dashboardTags,
    schemaVersion: 39,
    version: 1,
    editable: false,
    graphTooltip: 1,
    fiscalYearStartMonth: 0,
    liveNow: false,
    weekStart: '',
    timezone: 'browser',
    time: { from: from, to: 'now' },
    timepicker: {},
    refresh: '1m',
    annotations: { list: [annotation('Alerts', 'red') {
      expr: 'ALERTS{alertstate="firing", alertname=~"(Disk|Machine).+", %s, device=~"$device|"}' % $.host,
      titleFormat: '{{alertname}}',
      textFormat: '{{instance}} {{device}} {{persistentvolumeclaim}}',
      tagKeys: 'severity',
    }] + if one then events else [] },
    templating: { list: [
      {
        name: 'datasource',
        label: 'Data source',
        type: 'datasource',
        query: 'prometheus',
        regex: '',
        refresh: 1,
        hide: 0,
        multi: false,
        includeAll: false,
        current: {},
        options: [],
      },
      optional('cluster', 'disksla_disk_info'),
      variable('job', 'label_values(disksla_disk_info{' + $.cluster + '}, job)', true),
    ] + (if claims then [
           optional('namespace', 'disksla_kubernetes_volume_info{' + $.jobs + '}'),
           optional(
             'persistentvolumeclaim',
             'disksla_kubernetes_volume_info{' + $.jobs + ', namespace=~"$namespace"}'
           ),
         ] else []) + [
      variable('instance', 'label_values(' + disks($.jobs + selected) + ', instance)', !one),
      variable('device', 'label_values(' + disks($.host + selected) + ', device)', !one),
    ] },
    links: [
      {
        type: 'link',
        title: other[1],
        tooltip: other[2],
        // Not host and disk: all of them on *Disk*, or one on *Fleet*, are of no use.
        url: '/d/' + other[0] + '?${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}',
        icon: 'dashboard',
        tags: [],
        asDropdown: false,
        targetBlank: false,
        includeVars: false,
        keepTime: true,
      }
      for other in [
        [uids.fleet, 'Fleet', 'All disks, worst first'],
        [uids.disk, 'Disk', 'One disk in detail'],
        [uids.probes, 'Probes and verification', 'Results of probes and acceptance tests'],
      ]
      if other[0] != uid
    ] + (if config.projectUrl == '' then [] else [{
      type: 'link',
      title: 'disksla',
      tooltip: 'Home page of disksla',
      url: config.projectUrl,
      icon: 'doc',
      tags: [],
      asDropdown: false,
      targetBlank: true,
      includeVars: false,
      keepTime: false,
    }]),
    panels: numbered(placed(rows)),
  },
}
