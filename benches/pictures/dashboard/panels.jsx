// Panels by their type: Grafana's components with the options and the field configuration of the dashboard.
import {
  applyFieldOverrides,
  displayNameOverrideProcessor,
  FieldType,
  getDisplayValueAlignmentFactors,
  getFieldDisplayValues,
  getPanelOptionsWithDefaults,
  identityOverrideProcessor,
  PanelPlugin,
  standardEditorsRegistry,
  standardFieldConfigEditorRegistry,
} from '@grafana/data';
import { BigValue, commonOptionsBuilder, TimeSeries, useTheme2, VizRepeater } from '@grafana/ui';

const TIME_ZONE = 'utc';
const literally = (text) => text;

const STANDARD = ['color', 'decimals', 'displayName', 'links', 'mappings', 'max', 'min', 'noValue', 'thresholds', 'unit'];
/** Custom options of lines with the defaults of Grafana; those of axes and stacking are published. */
const LINES = {
  drawStyle: 'line',
  fillBelowTo: undefined,
  fillOpacity: 0,
  gradientMode: 'none',
  lineInterpolation: 'linear',
  lineStyle: undefined,
  lineWidth: 1,
  pointSize: 5,
  showPoints: 'auto',
  spanNulls: false,
  thresholdsStyle: { mode: 'off' },
};

const property = (path, defaultValue) => ({
  id: path,
  path,
  name: path,
  defaultValue,
  editor: () => null,
  override: () => null,
  process: path === 'displayName' ? displayNameOverrideProcessor : identityOverrideProcessor,
  shouldApply: (field) => field.type !== FieldType.time,
});

// Options are registered with editors, which are not shown here.
const EDITORS = ['boolean', 'number', 'radio', 'select', 'slider', 'text'];
standardEditorsRegistry.setInit(() => EDITORS.map((id) => ({ id, name: id, editor: () => null })));
standardFieldConfigEditorRegistry.setInit(() => STANDARD.map((path) => property(path)));

function lineOptions(builder) {
  for (const [path, defaultValue] of Object.entries(LINES)) {
    builder.addCustomEditor(property(path, defaultValue));
  }
  commonOptionsBuilder.addStackingConfig(builder, { mode: 'none', group: 'A' });
  commonOptionsBuilder.addAxisConfig(builder, {});
  commonOptionsBuilder.addHideFrom(builder);
}

const TYPES = {
  stat: { draw: Stat, plugin: new PanelPlugin(Stat).useFieldConfig(), padding: 'none' },
  timeseries: { draw: Lines, plugin: new PanelPlugin(Lines).useFieldConfig({ useCustomConfig: lineOptions }), padding: 'md' },
};

/** Return how a panel is drawn; there is no way without a component of Grafana. */
export function typeOf(panel) {
  const type = TYPES[panel.type];
  if (!type) {
    throw new Error(`panel ${panel.title} failed: @grafana/ui has no component for ${panel.type}`);
  }
  return type;
}

/** A panel without its frame: what the component of its type makes of the data. */
export function Drawing({ panel, frames, range, width, height }) {
  const theme = useTheme2();
  const { draw: Draw, plugin } = typeOf(panel);
  const { fieldConfig, options } = getPanelOptionsWithDefaults({
    plugin,
    currentOptions: panel.options,
    currentFieldConfig: panel.fieldConfig,
    isAfterPluginChange: false,
  });
  checkKnown(panel, plugin.fieldConfigRegistry);
  const data = applyFieldOverrides({
    data: frames,
    fieldConfig,
    fieldConfigRegistry: plugin.fieldConfigRegistry,
    replaceVariables: literally,
    theme,
    timeZone: TIME_ZONE,
  });
  return <Draw {...{ data, fieldConfig, options, range, width, height, theme }} />;
}

/** Raise an error for an option that would be dropped silently. */
function checkKnown(panel, registry) {
  const { defaults, overrides } = panel.fieldConfig;
  const { custom = {}, ...standard } = defaults;
  const used = [
    ...Object.keys(standard),
    ...Object.keys(custom).map((name) => `custom.${name}`),
    ...overrides.flatMap((override) => override.properties.map(({ id }) => id)),
  ];
  const unknown = used.filter((id) => !registry.getIfExists(id));
  if (unknown.length) {
    throw new Error(`panel ${panel.title} failed: found the unknown options ${unknown}`);
  }
}

function Lines({ data, fieldConfig, options, range, width, height }) {
  if (!data.length) {
    return <NoData text={fieldConfig.defaults.noValue} />;
  }
  const finite = data.map((frame) => ({
    ...frame,
    fields: frame.fields.map((field) => ({
      ...field,
      values: field.values.map((value) => (Number.isFinite(value) ? value : null)),
    })),
  }));
  return (
    <TimeSeries
      frames={finite}
      legend={options.legend}
      structureRev={1}
      timeRange={range}
      timeZone={TIME_ZONE}
      {...{ width, height }}
    />
  );
}

function NoData({ text }) {
  const theme = useTheme2();
  const style = { alignItems: 'center', color: theme.colors.text.secondary, display: 'flex', height: '100%', justifyContent: 'center' };
  return <div style={style}>{text}</div>;
}

function Stat({ data, fieldConfig, options, width, height, theme }) {
  const values = () =>
    getFieldDisplayValues({
      data,
      fieldConfig,
      reduceOptions: options.reduceOptions,
      replaceVariables: literally,
      sparkline: options.graphMode !== 'none',
      theme,
      timeZone: TIME_ZONE,
    });
  return (
    <VizRepeater
      autoGrid
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      getValues={values}
      itemSpacing={3}
      orientation={options.orientation}
      renderCounter={0}
      renderValue={({ value, alignmentFactors, count, width, height }) => (
        <BigValue
          colorMode={options.colorMode}
          graphMode={options.graphMode}
          justifyMode={options.justifyMode}
          text={options.text}
          textMode={options.textMode}
          value={value.display}
          {...{ alignmentFactors, count, height, theme, width }}
        />
      )}
      source={data}
      {...{ width, height }}
    />
  );
}
