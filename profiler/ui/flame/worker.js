// Shapes and lays out large trees off the main thread.
//
// In: `{load}`, a tree; then `{id, options}` for each shape of it. Out: `{id, result}` or `{id, error}`.

import { compute } from './compute.js';

let source;

addEventListener('message', ({ data }) => {
  if (data.load) { source = data.load; return; }
  try {
    const result = compute(source, data.options);
    const { tree, layout } = result;
    const arrays = [tree.parent, tree.frame, ...tree.own, ...tree.sum, layout.x0, layout.x1, layout.row, ...layout.lines];
    postMessage({ id: data.id, result }, [...new Set(arrays.map((a) => a.buffer))]);
  } catch (error) {
    postMessage({ id: data.id, error: String(error.message ?? error) });
  }
});
