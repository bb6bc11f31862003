import assert from 'node:assert/strict';
import test from 'node:test';
import { place } from '../plan/layout.js';
import { quantile, quantiles } from '../views/tasks.js';

const plan = (n, ...edges) => ({ nodes: Array.from({ length: n }, (_, id) => ({ id })), edges: edges.map(([from, to]) => ({ from, to })) });
const at = (placed) => placed.nodes.map((p) => [p.node.id, p.column, p.row]);

test('what reads stands on top, inputs side by side, the result below their middle', () => {
  const placed = place(plan(5, [1, 0], [2, 1], [3, 1], [4, 3]));
  assert.deepEqual(at(placed), [[0, 0.5, 3], [1, 0.5, 2], [2, 0, 1], [3, 1, 1], [4, 1, 0]]);
  assert.deepEqual([placed.columns, placed.rows, placed.edges.length], [2, 4, 4]);
});

test('an exchange that is used twice stands once', () => {
  const placed = place(plan(4, [1, 0], [2, 0], [3, 1], [3, 2]));
  assert.deepEqual(at(placed), [[0, 0.5, 2], [1, 0, 1], [2, 1, 1], [3, 0, 0]]);
  assert.equal(placed.edges.length, 4);
});

test('edges that lead nowhere, circles, and no plan at all', () => {
  const placed = place(plan(3, [0, 1], [1, 0], [2, 9], [9, 2], [2, 2]));
  assert.deepEqual(placed.edges, [{ from: 0, to: 1 }, { from: 1, to: 0 }]);
  assert.equal(new Set(at(placed).map(String)).size, 3, 'each has a place');
  assert.ok(placed.nodes.every((p) => p.column >= 0 && p.row >= 0 && p.row < placed.rows));
  assert.deepEqual(place(plan(0)), { nodes: [], edges: [], columns: 0, rows: 0 });
});

test('a chain of 400 operators, and a node that 400 give to', () => {
  const chain = place(plan(400, ...Array.from({ length: 399 }, (_, i) => [i + 1, i])));
  assert.deepEqual([chain.columns, chain.rows], [1, 400]);
  const wide = place(plan(401, ...Array.from({ length: 400 }, (_, i) => [i + 1, 0])));
  assert.deepEqual([wide.columns, wide.rows, wide.nodes[0].column], [400, 2, 199.5]);
});

test('quantiles of what tasks have', () => {
  assert.deepEqual([0, 0.25, 0.5, 0.75, 1].map((q) => quantile([1, 2, 3, 4, 5], q)), [1, 2, 3, 4, 5]);
  const task = (wall, cpu) => ({ exact: { wall_seconds: wall, cpu_seconds: cpu, run_delay_seconds: 0, blocked_seconds: wall - cpu, paused_seconds: 0 }, sampled: {} });
  const rows = quantiles([task(4, 1), task(2, 2), task(9, 1)]);
  assert.deepEqual(rows.map((r) => r.key), ['wall', 'cpu', 'delay', 'blocked'], 'no pauses, no line');
  assert.deepEqual(rows[0].at, [2, 4, 4, 9, 9]);
  assert.deepEqual(quantiles([{ sampled: { cpu_seconds: 3 } }]).map((r) => [r.key, r.at[2]]), [['cpu', 3]], 'without exact accounts');
});
