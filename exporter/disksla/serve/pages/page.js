const key = node => node.nodeName + node.dataset?.key;
function update(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const {name, value} of fresh.attributes)
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const {name} of [...old.attributes])
    if (!["open", "tabindex"].includes(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  const wanted = [...fresh.childNodes];
  wanted.forEach((node, index) => {
    const rest = [...old.childNodes].slice(index);
    const same = rest.find(each => key(each) === key(node));
    if (same) update(same, node);
    if (rest[0] !== (same ?? node)) old.insertBefore(same ?? node, rest[0] ?? null);
  });
  while (old.childNodes.length > wanted.length) old.lastChild.remove();
}
const clock = date => date.toLocaleTimeString([], {hourCycle: "h23"});
const COLUMNS = 60;
const SCALES = { // From which value on, the size of the unit, and its name.
  count: [[0, 1, ""]],
  bandwidth: [[2 ** 20, 2 ** 20, " MiB/s"], [1024, 1024, " KiB/s"], [0, 1, " B/s"]],
  duration: [[1, 1, " s"], [1e-4, 1e-3, " ms"], [0, 1e-6, " us"]],
  percent: [[0, 0.01, " %"]],
};
function written(value, unit) {
  const [, size, name] = SCALES[unit].find(([least]) => value >= least);
  const number = value / size;
  return (number < 100 ? +number.toPrecision(3) : Math.round(number)) + name;
}
function valueAt(path, column) {
  let value = null;
  for (const [, kind, number] of path.getAttribute("d").matchAll(/([MVH])([-+.e\d]+)/g)) {
    if (kind === "V") value = Number(number);
    else if (column < number) return kind === "H" ? value : null;
  }
  return null;
}
function* verdictsAt(strip, column) {
  for (const {x, width, height, className} of strip.querySelectorAll("rect"))
    if (x.baseVal.value <= column && column < x.baseVal.value + width.baseVal.value) {
      const words = document.querySelector(`.key .${className.baseVal}`).closest("span");
      const share = height.baseVal.value / strip.viewBox.baseVal.height;
      yield `${words.textContent.trim()} ${Math.round(100 * share)} %`;
    }
}
function textAt(charts, column) {
  const parts = [[...verdictsAt(charts.querySelector(".strip"), column)].join(", ")];
  for (const figure of charts.querySelectorAll("figure")) {
    const lines = [...figure.querySelectorAll(".reads[d], .writes[d], .line")]
      .map(path => [path.classList[0].replace("line", ""), valueAt(path, column)])
      .filter(([, value]) => value !== null)
      .map(([name, value]) => `${name} ${written(value, figure.dataset.unit)}`.trim());
    const title = figure.querySelector("figcaption").firstChild.data.trim();
    if (lines.length) parts.push(`${title}: ${lines.join(", ")}`);
  }
  return parts.filter(part => part).join(". ") || "not known";
}
let cursor = null; // The charts that show the values of a column, and the column.
const values = document.querySelector("#values");
function hide() {
  cursor = null;
  values.textContent = "";
  document.querySelectorAll(".cursor").forEach(line => line.remove());
}
function show(charts, column) {
  document.querySelectorAll(".cursor").forEach(line => line.remove());
  const {end, column: seconds} = charts.dataset;
  cursor = {charts, column, end};
  for (const plot of charts.querySelectorAll(".plot, .strip")) {
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const ends = {x1: column + 0.5, x2: column + 0.5, y1: "-100%", y2: "100%"};
    const style = {class: "cursor", "vector-effect": "non-scaling-stroke"};
    for (const [name, value] of Object.entries({...ends, ...style}))
      line.setAttribute(name, value);
    plot.append(line);
  }
  const at = new Date(1000 * (end - seconds * (COLUMNS - column)));
  const text = `${clock(at)}: ${textAt(charts, column)}.`;
  if (values.textContent !== text) values.textContent = text;
  const {left, bottom, width} = charts.getBoundingClientRect();
  Object.assign(values.style, {
    left: `${left + scrollX}px`, top: `${bottom + scrollY}px`, width: `${width}px`,
  });
}
const within = column => Math.max(0, Math.min(COLUMNS - 1, column));
function point({target, clientX}) {
  const plot = target.closest(".charts [role=img]");
  if (plot) {
    const {left, width} = plot.getBoundingClientRect();
    show(plot.closest(".charts"), within(Math.floor((clientX - left) / width * COLUMNS)));
  } else if (cursor && document.activeElement !== cursor.charts) hide();
}
document.addEventListener("pointermove", point);
document.addEventListener("pointerdown", point);
document.addEventListener("focusout", hide);
document.addEventListener("keydown", event => {
  if (event.key === "Escape") hide();
  const step = {ArrowLeft: -1, ArrowRight: 1, Home: -COLUMNS, End: COLUMNS}[event.key];
  if (!step || !event.target.matches(".charts")) return;
  event.preventDefault();
  show(event.target, within((cursor?.charts === event.target ? cursor.column : COLUMNS) + step));
});
function prepare() {
  for (const time of document.querySelectorAll("main time"))
    time.textContent = clock(new Date(time.dateTime));
  for (const charts of document.querySelectorAll(".charts")) charts.tabIndex = 0;
  if (!cursor) return;
  const {charts, column, end} = cursor; // Columns move to the left when time goes on.
  const moved = column - Math.round((charts.dataset.end - end) / charts.dataset.column);
  if (charts.isConnected && moved >= 0) show(charts, moved);
  else hide();
}
prepare();
let loaded = new Date();
setInterval(async () => {
  if (document.hidden || String(getSelection())) return;
  let problem = "";
  try {
    const answer = await fetch(location.href);
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const focused = document.activeElement;
    update(document.querySelector("main"), page.querySelector("main"));
    if (focused.isConnected) focused.focus({preventScroll: true});
    prepare();
    document.title = page.title;
    loaded = new Date();
  } catch (error) {
    problem = `Not updated since ${loaded.toLocaleTimeString()}: ${error.message}`;
    document.title = "not updated: " + document.title.replace(/^not updated: /, "");
  }
  const note = document.querySelector("#problem");
  if (note.textContent !== problem) note.textContent = problem;
}, 5000);
