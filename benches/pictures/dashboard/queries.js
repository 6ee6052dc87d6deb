// Queries of panels, as Grafana's data source for Prometheus sends them, and their results as data frames.
import { createDataFrame, FieldType, rangeUtil } from '@grafana/data';

/** Return the data frames of all queries of a panel that is so many pixels wide. */
export async function framesOf(panel, width, context) {
  const { intervalMs } = rangeUtil.calculateInterval(
    context.range,
    panel.maxDataPoints ?? Math.round(width),
    `${context.scrapeSeconds}s`
  );
  const frames = await Promise.all(
    panel.targets.map((target) => run(target, intervalMs / 1000, context))
  );
  return frames.flat();
}

async function run(target, stepSeconds, { range, scrapeSeconds, variables }) {
  const [from, to] = [range.from, range.to].map((time) => time.valueOf() / 1000);
  const query = filledIn(target.expr, {
    ...variables,
    __interval: `${stepSeconds}s`,
    __range: `${Math.round(to - from)}s`,
    __range_s: Math.round(to - from),
    __rate_interval: `${Math.max(stepSeconds + scrapeSeconds, 4 * scrapeSeconds)}s`,
  });
  if (target.instant) {
    const rows = await ask('query', { query, time: to });
    return target.format === 'table' ? [table(target, rows)] : rows.map((row) => series(target, row.metric, [row.value]));
  }
  const aligned = (time) => Math.floor(time / stepSeconds) * stepSeconds;
  const rows = await ask('query_range', { query, start: aligned(from), end: aligned(to), step: stepSeconds });
  return rows.map((row) => series(target, row.metric, row.values, stepSeconds));
}

/** Return an expression with values in place of variables, longest names first. */
function filledIn(expr, values) {
  const names = Object.keys(values).sort((one, other) => other.length - one.length);
  const filled = names.reduce((text, name) => text.replaceAll(`$${name}`, values[name]), expr);
  if (filled.includes('$')) {
    throw new Error(`found a variable without a value in ${filled}`);
  }
  return filled;
}

async function ask(path, parameters) {
  const response = await fetch(`/api/v1/${path}`, { method: 'POST', body: new URLSearchParams(parameters) });
  const { status, error, data } = await response.json();
  if (status !== 'success') {
    throw new Error(`query failed: ${error}; ${parameters.query}`);
  }
  return data.result;
}

const time = (values) => values.map(([seconds]) => seconds * 1000);
const number = (values) => values.map(([, text]) => Number(text.replace('Inf', 'Infinity')));

/** Return the frame of one series. A longer gap than the step interrupts its line. */
function series(target, labels, values, stepSeconds) {
  return createDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: time(values), config: stepSeconds ? { interval: stepSeconds * 1000 } : {} },
      { name: 'Value', type: FieldType.number, values: number(values), labels, config: { displayNameFromDS: legend(target, labels) } },
    ],
  });
}

/** Return the frame of the format `table`: a column for each label, one row for each series. */
function table(target, rows) {
  const values = rows.map((row) => row.value);
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.metric)))].sort();
  return createDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: time(values) },
      ...names.map((name) => ({ name, type: FieldType.string, values: rows.map((row) => row.metric[name] ?? '') })),
      { name: 'Value', type: FieldType.number, values: number(values) },
    ],
  });
}

/** Return the name of a series: its legend with the values of labels, or all labels. */
function legend(target, labels) {
  if (target.legendFormat) {
    return target.legendFormat.replace(/{{\s*(\w+)\s*}}/g, (_, name) => labels[name] ?? '');
  }
  const { __name__: name = '', ...others } = labels;
  return `${name}{${Object.entries(others).map(([key, value]) => `${key}="${value}"`).join(', ')}}`;
}
