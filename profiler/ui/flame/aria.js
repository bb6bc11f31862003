// The graph for those who hear it: a tree of elements beside the canvas.
//
// In: a laid-out tree and the node that the keyboard is at. Out: `role=tree` with the way down to the node, its
// siblings and its callees, each a sentence; the canvas's host points to the current one (aria-activedescendant).
// Limit: NEAR siblings and callees each. The table of methods says the same as a whole.

import { h } from '../dom.js';
import { sentence } from './moves.js';

/** Most siblings, and most callees. */
const NEAR = 20;

/** Fills `host` for a node; gives the id of its element. */
export function mirror(host, tree, layout, node, unit) {
  const way = [];
  for (let at = node; ; at = tree.parent[at]) { way.unshift(at); if (at === 0) break; }
  const near = (row, within) => [...(layout.lines[row] ?? [])].filter((id) => tree.parent[id] === within && id !== 0);
  const siblings = node === 0 ? [0] : near(layout.row[node], tree.parent[node]);
  const at = siblings.indexOf(node);
  const some = siblings.slice(Math.max(0, at - NEAR / 2), at + NEAR / 2);
  const below = near(layout.row[node] + 1, node);
  const item = (id, level, more = {}) => h('div', {
    role: 'treeitem', id: `node-${id}`, aria: { level, ...more },
  }, sentence(tree, layout, id, unit));
  host.replaceChildren(
    ...way.slice(0, -1).map((id, level) => item(id, level + 1, { expanded: 'true' })),
    ...some.map((id) => item(id, way.length, {
      setsize: siblings.length, posinset: siblings.indexOf(id) + 1, selected: String(id === node),
      expanded: id === node && below.length > 0 ? 'true' : null,
    })),
    ...(below.length > 0 ? below.slice(0, NEAR).map((id, i) => item(id, way.length + 1, { setsize: below.length, posinset: i + 1 })) : []),
  );
  return `node-${node}`;
}
