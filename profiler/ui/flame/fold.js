// The frames that every task of Spark shares, from its thread's start to `Task.run`, as one.
//
// In: a tree. Out: a new one, of the same total: each stack that goes through `Task.run` begins with one frame in place of those
// down to it; frames of labels stay before it. Stacks that do not get there stay as they are. Pure.

import { Builder } from './tree.js';

/** Where a task's own work begins (org.apache.spark.scheduler.Task, Spark 1.0 to 4.x). */
const END = 'org.apache.spark.scheduler.Task.run';
/** Fewer frames are not folded. */
const FEWEST = 4;

/** The folded tree; the same one where there is nothing to fold. */
export function fold(t) {
  const n = t.parent.length;
  const is = (i) => t.frames[t.frame[i]].kind !== 'label' && t.frames[t.frame[i]].name === END;
  // Which nodes have a `Task.run` below them.
  const leads = new Uint8Array(n);
  for (let i = n - 1; i > 0; i -= 1) if (leads[i] || is(i)) { leads[i] = 1; leads[t.parent[i]] = 1; }
  if (!leads[0]) return t;
  const out = new Builder(t.own.length);
  out.frame[0] = t.frame[0];
  const folded = t.frames.length;
  // What each node is in the new tree: where it stands, how many frames would go, and whether it is past the fold.
  const place = new Uint32Array(n);
  const root = new Uint32Array(n);
  const depth = new Uint32Array(n);
  const past = new Uint8Array(n);
  let frames = 0;
  for (let i = 1; i < n; i += 1) {
    const up = t.parent[i];
    const label = t.frames[t.frame[i]].kind === 'label';
    depth[i] = past[up] || label ? 0 : depth[up] + 1;
    root[i] = root[up];
    past[i] = past[up];
    if (!past[i] && is(i) && depth[i] >= FEWEST) {
      place[i] = out.child(root[i], folded);
      past[i] = 1;
      frames = Math.max(frames, depth[i]);
    } else place[i] = out.child(place[up], t.frame[i]);
    if (label && !past[i]) root[i] = place[i];
    out.add(place[i], t.own, i);
  }
  if (frames === 0) return t;
  const frame = { kind: 'fold', name: `thread start … Task.run (${frames} frames)` };
  return bare(out.done([...t.frames, frame], t.kind));
}

/** Without the nodes that have nothing left: the ways to `Task.run` that were folded. */
function bare(t) {
  const out = new Builder(t.own.length);
  out.frame[0] = t.frame[0];
  const place = new Uint32Array(t.parent.length);
  for (let i = 1; i < t.parent.length; i += 1) {
    if (t.sum.every((column) => column[i] === 0)) continue;
    place[i] = out.child(place[t.parent[i]], t.frame[i]);
    out.add(place[i], t.own, i);
  }
  out.add(0, t.own, 0);
  return out.done(t.frames, t.kind);
}
