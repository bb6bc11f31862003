// A query's plan as a graph: each operator with its CPU and its share, in boxes that lead to its flame graph.
//
// In: an answer of `/sql` of one execution. Out: an element. The bar of a box is the part of the query's samples that are
// the operator's alone; what it has in one loop with others, or with others of its name, stands beside, for it cannot be
// divided.

import { h } from '../dom.js';
import { duration, percent, plusMinus, safe } from '../format.js';
import { amount } from '../units.js';
import { place } from './layout.js';

const WIDTH = 232;
const HEIGHT = 58;
const GAP = { x: 18, y: 22 };
const SVG = 'http://www.w3.org/2000/svg';

/** Rows of an answer's operators that a node of the plan has. */
export const rowsOf = (operators, id) => (operators ?? []).filter((row) => row.nodes.includes(id));

/** The graph. `link(rows)` is where a node with these operators leads, null of none. */
export function planGraph({ plan, operators, kind, link }) {
  const placed = place(plan);
  const left = (p) => p.column * (WIDTH + GAP.x);
  const top = (p) => p.row * (HEIGHT + GAP.y);
  const width = Math.max(WIDTH, placed.columns * (WIDTH + GAP.x) - GAP.x);
  const height = Math.max(HEIGHT, placed.rows * (HEIGHT + GAP.y) - GAP.y);
  const by = new Map(placed.nodes.map((p) => [p.node.id, p]));
  const lines = document.createElementNS(SVG, 'svg');
  for (const [name, value] of Object.entries({ width, height, 'aria-hidden': 'true' })) lines.setAttribute(name, value);
  for (const { from, to } of placed.edges) {
    const [a, b] = [by.get(from), by.get(to)];
    const [x, y, x2, y2] = [left(a) + WIDTH / 2, top(a) + HEIGHT, left(b) + WIDTH / 2, top(b)];
    const path = document.createElementNS(SVG, 'path');
    path.setAttribute('d', `M${x} ${y}C${x} ${(y + y2) / 2} ${x2} ${(y + y2) / 2} ${x2} ${y2}`);
    lines.append(path);
  }
  // In the order in which rows go through, for those who hear the page or go by Tab.
  const boxes = [...placed.nodes].sort((a, b) => a.row - b.row || a.column - b.column)
    .map((p) => box(p.node, { left: left(p), top: top(p), kind, link }, rowsOf(operators, p.node.id)));
  return h('div', { class: 'scroll plan', tabindex: '0', role: 'region', aria: { label: 'Plan' } },
    h('ol', { style: { width: `${width}px`, height: `${height}px` } }, lines, boxes));
}

function box(node, { left, top, kind, link }, rows) {
  const own = node[kind.amount] ?? 0;
  const shared = node.shared?.samples > 0;
  const inside = node.in_method_of !== null && node.in_method_of !== undefined;
  const target = rows.length > 0 ? link(rows) : null;
  const with_ = rows.filter((row) => row.nodes.length > 1).map((row) => safe(row.operator, 80)).join(', ');
  const hint = [safe(node.name, 300), `${percent(node.share)} ${plusMinus(node.samples)} of the query belongs to it alone`,
    shared ? `${percent(node.shared.share)} is of ${with_}` : '', inside ? 'Its code is part of the method of another operator of its codegen stage, and its samples count there' : '',
    node.waited_seconds ? `Its threads were waiting for ${duration(node.waited_seconds)}` : ''].filter(Boolean).join('\n');
  const figures = node.samples > 0 ? `${amount(own, kind)} · ${percent(node.share)}` : shared ? `${rows.some((row) => row.of === 'fused') ? 'in one loop' : 'with its like'}: ${percent(node.shared.share)}` : inside ? 'in another’s loop' : 'no samples';
  const content = [
    h('span', { class: 'operator' }, safe(node.name, 60)),
    h('span', { class: 'figures' }, figures, node.waited_seconds ? ` · waiting ${duration(node.waited_seconds)}` : ''),
    node.codegen === null || node.codegen === undefined ? null : h('span', { class: 'codegen', title: 'Codegen stage: operators with one number are one generated class' }, `codegen ${node.codegen}`),
  ];
  const properties = { class: `box${node.samples > 0 ? '' : ' idle'}`, title: hint, style: { left: `${left}px`, top: `${top}px`, width: `${WIDTH}px`, height: `${HEIGHT}px`, '--part': `${(Math.min(1, Math.max(0, node.share || 0)) * 100).toFixed(2)}%` } };
  return h('li', properties, target ? h('a', { href: target }, content) : h('div', {}, content));
}
