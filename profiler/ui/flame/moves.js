// Where an arrow key goes in a graph, and what a node says when it is read aloud.
//
// In: a layout, the node, the direction as seen on the screen. Out: another node, or the same where there is none.
// Moves go by place, so they are right for flames, icicles and sandwiches alike. Pure.

import { percent, safe } from '../format.js';
import { scaled, shown } from '../units.js';
import { firstAt } from './draw.js';
import { hasSelf } from './tree.js';

/** The next node in a direction: `up`, `down`, `left`, `right`, `first`, `last`. */
export function move(layout, node, direction, { flame = false } = {}) {
  const line = layout.lines[layout.row[node]];
  const at = line.indexOf(node);
  switch (direction) {
    case 'left': return line[Math.max(0, at - 1)];
    case 'right': return line[Math.min(line.length - 1, at + 1)];
    case 'first': return line[0];
    case 'last': return line[line.length - 1];
    default: {
      const step = (direction === 'down') !== flame ? 1 : -1;
      const next = layout.lines[layout.row[node] + step];
      return next ? nearest(layout, next, node) : node;
    }
  }
}

/** Of a line, the node that has most in common with another's width; the widest of them first. */
function nearest(layout, line, node) {
  const { x0, x1 } = layout;
  let best = node;
  let most = 0;
  for (let i = firstAt(line, x1, x0[node]); i < line.length && x0[line[i]] < x1[node]; i += 1) {
    const shared = Math.min(x1[line[i]], x1[node]) - Math.max(x0[line[i]], x0[node]);
    if (shared > most) [best, most] = [line[i], shared];
  }
  return best;
}

/** A value of a tree's first column in its unit. */
export function value(tree, v, unit = 'ns') {
  return tree.kind === 'diff' ? scaled(v, unit) : shown(v, unit);
}

/** One sentence about a node. */
export function sentence(tree, layout, node, unit = 'ns') {
  const frame = tree.frames[tree.frame[node]];
  const name = safe(frame.name, 160);
  if (tree.kind === 'diff') {
    const [right, left] = [tree.sum[0][node], tree.sum[1][node]];
    const [l, r, ownLeft, ownRight] = [left, right, tree.own[1][node], tree.own[0][node]].map((v) => value(tree, v, unit));
    const self = hasSelf(tree, node) ? `, self left ${ownLeft}, right ${ownRight}` : '';
    return `${name}, ${frame.kind}: left ${l}, right ${r}${self}`;
  }
  const share = tree.sum[0][0] > 0 ? tree.sum[0][node] / tree.sum[0][0] : 0;
  const self = hasSelf(tree, node) ? `, self ${value(tree, tree.own[0][node], unit)}` : '';
  return `${name}, ${frame.kind}: ${percent(share)}, ${value(tree, tree.sum[0][node], unit)}${self}`;
}
