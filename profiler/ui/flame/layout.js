// Where each node's box is.
//
// In: a tree, how its width is measured and siblings are ordered. Out: `{x0, x1, row, rows, lines, root}`: the box
// from x0 to x1 of a width of 1, its row (0 is drawn first), and the nodes of each row from left to right
// (`lines[row]`). A sandwich is callers above their method and callees below it, in one layout. Done once; drawing
// only reads it. Pure.

/** The number that a box's width is. `both` of a comparison is the sum of its sides. */
export function widths(t, basis) {
  if (t.kind !== 'diff' || basis === 'right') return t.sum[0];
  if (basis === 'left') return t.sum[1];
  return t.sum[0].map((v, i) => v + t.sum[1][i]);
}

/** Nodes in the order in which siblings stand. */
function order(t, width, sort) {
  const n = t.parent.length;
  const ids = new Uint32Array(n);
  for (let i = 0; i < n; i += 1) ids[i] = i;
  const byName = t.frames.map((f, i) => i).sort((a, b) => (t.frames[a].name < t.frames[b].name ? -1 : t.frames[a].name > t.frames[b].name ? 1 : a - b));
  const rank = new Uint32Array(t.frames.length);
  byName.forEach((frame, at) => { rank[frame] = at; });
  const name = (a, b) => rank[t.frame[a]] - rank[t.frame[b]] || a - b;
  return ids.sort(sort === 'name' ? name : (a, b) => width[b] - width[a] || name(a, b));
}

/** Boxes of one tree. */
export function layout(t, { basis = 'both', sort = 'weight' } = {}) {
  const n = t.parent.length;
  const width = widths(t, basis);
  const x0 = new Float64Array(n);
  const x1 = new Float64Array(n);
  const row = new Uint32Array(n);
  const total = width[0] || 1;
  const sorted = order(t, width, sort);
  // Callees of each node, in order, behind one another.
  const first = new Uint32Array(n + 1);
  for (let i = 1; i < n; i += 1) first[t.parent[i] + 1] += 1;
  for (let i = 0; i < n; i += 1) first[i + 1] += first[i];
  const next = Uint32Array.from(first.subarray(0, n));
  const callee = new Uint32Array(Math.max(0, n - 1));
  for (const id of sorted) if (id > 0) { callee[next[t.parent[id]]] = id; next[t.parent[id]] += 1; }
  // In preorder, so that each row's nodes come from left to right.
  const lines = [];
  const pending = [0];
  x1[0] = width[0] > 0 ? 1 : 0;
  while (pending.length > 0) {
    const id = pending.pop();
    (lines[row[id]] ??= []).push(id);
    let x = x0[id];
    for (let c = first[id]; c < first[id + 1]; c += 1) {
      const child = callee[c];
      x0[child] = x;
      x += width[child] / total;
      x1[child] = Math.min(x, x1[id]);
      row[child] = row[id] + 1;
    }
    for (let c = first[id + 1] - 1; c >= first[id]; c -= 1) if (width[callee[c]] > 0) pending.push(callee[c]);
  }
  return { x0, x1, row, rows: lines.length, lines: lines.map((l) => Uint32Array.from(l)), root: 0 };
}

/** Callers above, callees below: both trees and both layouts as one. The method is node 0. */
export function sandwich(above, below, options) {
  const [a, b] = [layout(above, options), layout(below, options)];
  const shift = below.parent.length - 1;
  const join = (low, high, map = (v) => v) => {
    const out = new low.constructor(low.length + high.length - 1);
    out.set(low);
    for (let i = 1; i < high.length; i += 1) out[shift + i] = map(high[i]);
    return out;
  };
  const depth = a.rows - 1;
  const t = {
    frames: below.frames,
    kind: below.kind,
    parent: join(below.parent, above.parent, (v) => (v === 0 ? 0 : v + shift)),
    frame: join(below.frame, above.frame),
    // A caller's own number here is what no further caller has: the stack's first frame.
    own: below.own.map((column, c) => join(column, above.own[c])),
    sum: below.sum.map((column, c) => join(column, above.sum[c])),
    callers: shift + 1, // nodes from here on are callers
  };
  const lines = [];
  a.lines.forEach((line, r) => { if (r > 0) lines[depth - r] = line.map((id) => id + shift); });
  b.lines.forEach((line, r) => { lines[depth + r] = line; });
  const row = join(b.row.map((r) => r + depth), a.row, (r) => depth - r);
  return { tree: t, layout: { x0: join(b.x0, a.x0), x1: join(b.x1, a.x1), row, rows: lines.length, lines, root: 0 } };
}
