// New runs in the open list, and the chart for choosing a period.

// --- Live: after an event, reload the list from the server, which applies the filters.

const PAUSE_MS = 1000; // at most one reload in this time

function watch() {
  let isPaused = false;
  let waiting = 0;
  let timer = null;

  const show = () => {
    const button = document.querySelector("[data-live]");
    if (!button) return;
    const { pause, resume, waiting: fresh } = button.dataset;
    button.hidden = false;
    button.setAttribute("aria-pressed", isPaused);
    button.querySelector("[data-label]").textContent = isPaused ? resume + (waiting ? ` (${waiting} ${fresh})` : "") : pause;
  };

  const refresh = async () => {
    timer = null;
    const executions = document.querySelector("[data-list]:has([data-live])");
    const page = executions && (await pageAt(executions.dataset.list));
    if (!page || !executions.isConnected) return; // no answer, or filters were set meanwhile
    if (!isPaused) return prepend(page);
    waiting = newRows(page).length;
    show();
  };

  const note = () => (timer ??= setTimeout(refresh, PAUSE_MS));
  listen({ execution: note }, refresh); // from app.js
  setInterval(showRunning, RUNNING_MS);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-live]")) return;
    isPaused = !isPaused;
    waiting = 0;
    show();
    refresh();
  });
  document.addEventListener("htmx:after:swap", show);
  show();
}

// Unfinished runs have no events, so they are polled while the page is visible.
const RUNNING_MS = 2000;

async function showRunning() {
  const here = document.getElementById("running");
  const page = here && !document.hidden && (await pageAt("/flow/running"));
  if (!page) return;
  here.replaceWith(document.adoptNode(page.getElementById("running")));
  prepare();
}

function newRows(page) {
  const known = new Set(all("#rows [data-id]").map((row) => row.dataset.id));
  return all("#rows [data-id]", page).filter((row) => !known.has(row.dataset.id));
}

function prepend(page) {
  const list = document.getElementById("rows");
  const fresh = page.getElementById("rows");
  if (!fresh) return;
  if (!list) return document.getElementById("executions").replaceWith(document.adoptNode(page.getElementById("executions")));
  const rows = newRows(page);
  rows.forEach((row) => row.classList.add("fresh"));
  list.prepend(...rows.map((row) => document.adoptNode(row)));
  const toCheck = page.getElementById("to-check");
  if (toCheck) document.getElementById("to-check")?.replaceWith(document.adoptNode(toCheck));
  document.querySelector("#executions [role=status]").textContent = page.querySelector("#executions [role=status]").textContent;
  prepare(); // from app.js: convert the times
}

// --- The chart. Dragging selects a period.

const seconds = (written) => Date.parse(written) / 1000;
const MOST_COLUMNS = 5000;

// The start or end of the bucket with an instant; days are in the reader's time zone.
function border(round, at, { bucket_s, series }) {
  const known = seconds(series[0].at);
  return known + round((at - known) / bucket_s) * bucket_s;
}

// The selected period in whole buckets; an open one begins with the first run, or ends now.
function endsOf(data) {
  const { bucket_s, series, from, to } = data;
  const first = from ? seconds(from) : seconds(series[0].at);
  const last = to ? seconds(to) : Math.max(Date.now() / 1000, seconds(series.at(-1).at) + bucket_s);
  return [border(Math.floor, first, data), border(Math.ceil, last, data)];
}

// A column for each bucket of the period, at its middle; if there are too many, begin with the first one with a run.
function filled({ bucket_s, series }, [start, end]) {
  const points = new Map(series.map((point) => [seconds(point.at), point]));
  const first = (end - start) / bucket_s > MOST_COLUMNS ? seconds(series[0].at) : start;
  const columns = [];
  for (let at = first; at < end && columns.length < MOST_COLUMNS; at += bucket_s) {
    const point = points.get(at);
    columns.push([at + bucket_s / 2, point?.count ?? 0, point?.failed || null, point?.p50_ms ?? null, point?.p95_ms ?? null]);
  }
  return columns;
}

// On a narrow screen, combine several buckets to a column: add the counts, keep the slowest time.
function coarser(columns, factor) {
  const groups = [];
  for (let at = 0; at < columns.length; at += factor) groups.push(columns.slice(at, at + factor));
  const sum = (group, i) => group.reduce((total, column) => total + column[i], 0);
  const most = (group, i) => group.reduce((most, column) => (column[i] == null ? most : Math.max(most ?? 0, column[i])), null);
  return groups.map((group) => [sum(group, 0) / group.length, sum(group, 1), sum(group, 2) || null, most(group, 3), most(group, 4)]);
}

function choose(chart, data) {
  const { left, width } = chart.select;
  if (width < 4) return;
  const at = (x) => chart.posToVal(x, "x");
  const from = border(Math.floor, at(left), data); // include every bar that was touched
  const to = border(Math.ceil, at(left + width), data);
  const iso = (at) => new Date(at * 1000).toISOString();
  location.href = `/insights?${new URLSearchParams({ from: iso(from), to: iso(to) })}`;
}

// `dayOf` and `clockOf` are from app.js.
function stamp(instant) {
  const at = new Date(instant * 1000);
  return `${dayOf(at)} ${clockOf(at)}`;
}

// The date at the beginning of a day, else the time.
function labels(chart, ticks, axis, space, step) {
  return ticks.map((tick, i) => {
    const at = new Date(tick * 1000);
    const isNewDay = i === 0 || new Date(ticks[i - 1] * 1000).getDate() !== at.getDate();
    const day = dayOf(at).slice(5); // without the year
    if (step >= 86400) return day;
    return isNewDay ? `${clockOf(at)}\n${day}` : clockOf(at);
  });
}

// A canvas cannot use CSS variables: read the colour from an element.
function colours(place, ...names) {
  place.style.transitionProperty = "none"; // with reduced motion, everything has a very short transition
  const found = names.map((name) => {
    place.style.color = `var(${name})`;
    return getComputedStyle(place).color;
  });
  place.style.color = place.style.transitionProperty = "";
  return found;
}

function draw(place) {
  const data = JSON.parse(document.getElementById(place.dataset.chart).textContent);
  const [accent, soft, signal, muted, line, text] = colours(place, "--primary", "--primary-soft", "--danger", "--muted-foreground", "--border", "--foreground");
  const language = document.documentElement.lang;
  const number = (value) => (value == null ? "–" : value.toLocaleString(language));
  const ms = (value) => (value == null ? "–" : `${Number(value.toPrecision(3)).toLocaleString(language)} ms`);
  const axis = { stroke: muted, font: `12px ${getComputedStyle(place).fontFamily}`, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const bars = { paths: uPlot.paths.bars({ size: [0.8, 48] }), points: { show: false }, value: (chart, value) => number(value) };
  const fromZero = { range: (chart, min, max) => [0, Math.max(max * 1.1, 1)] };
  const ends = endsOf(data);
  const buckets = filled(data, ends);
  const factor = Math.ceil(buckets.length / (place.clientWidth / COLUMN));
  const columns = factor > 1 ? coarser(buckets, factor) : buckets;
  const hasFailed = columns.some((column) => column[2]);
  const shown = hasFailed ? [0, 1, 2, 3, 4] : [0, 1, 3, 4]; // no red without failures
  const isNarrow = place.clientWidth < 480;
  const curve = { scale: "ms", points: { size: 4 }, spanGaps: true, value: (chart, value) => ms(value) };
  return new uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      cursor: { drag: { x: true, y: false, setScale: false } },
      scales: { x: { range: () => ends }, y: fromZero, ms: { distr: 3, log: 10 } }, // logarithmic, so that one slow run does not flatten the rest
      axes: [
        { ...axis, values: labels },
        { ...axis, size: (chart, texts) => 20 + 7 * Math.max(1, ...(texts ?? []).map((text) => text.length)), incrs: [1, 2, 5].flatMap((n) => [n, n * 1e2, n * 1e4, n * 10, n * 1e3, n * 1e5]).sort((a, b) => a - b), values: (chart, ticks) => ticks.map(number) },
        { ...axis, size: isNarrow ? 64 : 72, scale: "ms", side: 1, grid: { show: false }, values: (chart, ticks) => ticks.map((tick) => (tick == null ? "" : tick >= 1000 ? `${tick / 1000} s` : `${tick} ms`)) },
      ],
      series: [
        { label: place.dataset.time, value: (chart, middle) => (middle == null ? "–" : stamp(middle - (factor * data.bucket_s) / 2)) },
        { ...bars, label: place.dataset.runs, stroke: accent, fill: soft },
        { ...bars, label: place.dataset.failed, stroke: signal, fill: signal },
        { ...curve, label: place.dataset.median, stroke: text, width: 1.5 },
        { ...curve, label: place.dataset.slow, stroke: muted, width: 1.5, dash: [4, 4] },
      ].filter((_, i) => shown.includes(i)),
      hooks: { setSelect: [(chart) => choose(chart, data)] },
    },
    shown.map((i) => columns.map((column) => column[i])),
    place,
  );
}

const HEIGHT = 232;
const COLUMN = 6; // minimum width of a column in pixels
const place = document.querySelector("[data-chart]");
if (place) {
  let chart = draw(place);
  const redraw = () => {
    chart.destroy();
    chart = draw(place);
  };
  document.addEventListener("themechange", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("resize", () => chart.setSize({ width: place.clientWidth, height: HEIGHT }));
}
if (document.querySelector("[data-live]")) watch();
