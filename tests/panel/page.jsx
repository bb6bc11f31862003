// Draws one answer of SelectMergeStacktraces with Grafana's own flame graph component, and writes what its top table
// shows into the document.
//
// In: window.ANSWER, the answer in protobuf's JSON. Out: <pre id="shown">, JSON {rows: [[symbol, self, total]],
// canvas: [width, height], painted: pixels that are not the background, title of the document}, or {error}.

// The packages' CommonJS builds: what their .mjs builds import from CommonJS, esbuild joins as Node would, and
// components become objects.
const { createDataFrame, createTheme, FieldType } = require('@grafana/data');
const { FlameGraph } = require('@grafana/flamegraph');
const React = require('react');
const { createRoot } = require('react-dom/client');

// Bars by rows become bars by depth, a caller before its callees: Grafana's nested sets. A bar lies inside its caller.
function nested({ names, levels }) {
  const rows = levels.map(({ values }) => {
    const bars = [];
    for (let at = 0, edge = 0; at < values.length; at += 4) {
      const [gap, total, self, name] = values.slice(at, at + 4).map(Number);
      bars.push({ start: edge + gap, end: edge + gap + total, total, self, label: names[name] });
      edge += gap + total;
    }
    return bars;
  });
  const out = { level: [], value: [], self: [], label: [] };
  const next = rows.map(() => 0);
  const walk = (bar, depth) => {
    out.level.push(depth);
    out.value.push(bar.total);
    out.self.push(bar.self);
    out.label.push(bar.label);
    const below = rows[depth + 1] ?? [];
    while (next[depth + 1] < below.length && below[next[depth + 1]].end <= bar.end) {
      walk(below[next[depth + 1]++], depth + 1);
    }
  };
  walk(rows[0][0], 0);
  return out;
}

function frame(graph) {
  const { level, value, self, label } = nested(graph);
  const text = [...new Set(label)];
  const index = new Map(text.map((name, at) => [name, at]));
  // No unit: the table then shows numbers as they are.
  const config = { unit: 'none', decimals: 0 };
  return createDataFrame({
    name: 'response',
    meta: { preferredVisualisationType: 'flamegraph' },
    fields: [
      { name: 'level', type: FieldType.number, values: level },
      { name: 'value', type: FieldType.number, values: value, config },
      { name: 'self', type: FieldType.number, values: self, config },
      { name: 'label', type: FieldType.enum, values: label.map((name) => index.get(name)),
        config: { type: { enum: { text } } } },
    ],
  });
}

function shown() {
  const rows = [...document.querySelectorAll('[role="row"]')]
    .map((row) => [...row.querySelectorAll('[role="cell"], [role="gridcell"]')].map((cell) => cell.textContent.trim()))
    .filter((cells) => cells.length >= 3)
    .map((cells) => cells.slice(-3));
  const canvas = document.querySelector('canvas');
  const pixels = canvas?.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data ?? [];
  let painted = 0;
  for (let at = 3; at < pixels.length; at += 4) painted += pixels[at] > 0;
  return { rows, canvas: canvas ? [canvas.width, canvas.height] : null, painted, title: document.title };
}

function tell(what) {
  const pre = document.createElement('pre');
  pre.id = 'shown';
  pre.textContent = JSON.stringify(what);
  document.body.append(pre);
}

window.addEventListener('error', (event) => tell({ error: String(event.error?.stack ?? event.message) }));
const theme = createTheme({ colors: { mode: 'light' } });
createRoot(document.getElementById('root')).render(
  React.createElement(FlameGraph, { data: frame(window.ANSWER.flamegraph), getTheme: () => theme, stickyHeader: false }),
);
setTimeout(() => tell(shown()), 4000);
