// Other shapes of a call tree: frames left out or taken together, callers first, one method's sandwich.
//
// In: a tree and `{hide, only, detail, invert, focus}`. Out: a new tree; its total is the old one's, but for a sandwich,
// whose total is the method's. What is hidden goes to its caller, so that no time is lost. Pure. Limit: MOST nodes
// (a deeper part then counts for its caller), which is beyond what a store's answer holds.

import { Builder } from './tree.js';

/** Most nodes of a new shape. */
const MOST = 2_000_000;

/** Which switch hides a frame: `kernel`, `jvm`, or none. */
export function layer(frame) {
  if (frame.kind === 'kernel') return 'kernel';
  if (frame.kind === 'stub' || (frame.kind === 'native' && /(^|\/)libjvm\.so/.test(frame.module ?? ''))) return 'jvm';
  return '';
}

const JAVA = ['java', 'java-inlined', 'java-interpreted'];

/** What makes two frames the same one. */
export function keyOf(frame, detail) {
  if (frame.kind === 'label') return `label\u0000${frame.name}`;
  const line = frame.line ?? '';
  if (JAVA.includes(frame.kind)) return `${detail ? frame.kind : 'java'}\u0000${frame.name}\u0000${line}`;
  return `${detail ? frame.kind : ''}\u0000${frame.name}\u0000${frame.module ?? ''}\u0000${line}`;
}

/** Whether a frame is somebody's own code: its name begins with one of these. Groups are nobody's code and stay. */
export const isOwn = (frame, only) => frame.kind === 'label' || only.some((prefix) => frame.name.startsWith(prefix));

/** Frames taken together and left out: for each old frame its new one, or -1. */
export function frameMap(t, { hide = [], only = [], detail = false }) {
  const weight = new Float64Array(t.frames.length);
  for (let i = 0; i < t.frame.length; i += 1) for (const column of t.sum) weight[t.frame[i]] += column[i];
  const places = new Map();
  const frames = [];
  const best = [];
  const map = new Int32Array(t.frames.length);
  t.frames.forEach((frame, i) => {
    if ((hide.includes(layer(frame)) && layer(frame)) || (only.length > 0 && i !== t.frame[0] && !isOwn(frame, only))) { map[i] = -1; return; }
    const key = keyOf(frame, detail);
    let at = places.get(key);
    if (at === undefined) {
      at = frames.length;
      places.set(key, at);
      frames.push(frame);
      best.push(weight[i]);
    } else if (weight[i] > best[at]) { // it shows as what it mostly ran as
      frames[at] = frame;
      best[at] = weight[i];
    }
    map[i] = at;
  });
  return { map, frames };
}

/** The tree without hidden frames, equal siblings taken together. */
export function merge(t, options) {
  const { map, frames } = frameMap(t, options);
  const out = new Builder(t.own.length, MOST);
  out.frame[0] = Math.max(0, map[t.frame[0]]);
  const place = new Uint32Array(t.parent.length);
  for (let i = 0; i < t.parent.length; i += 1) {
    const frame = map[t.frame[i]];
    place[i] = i === 0 ? 0 : frame < 0 ? place[t.parent[i]] : out.child(place[t.parent[i]], frame);
    out.add(place[i], t.own, i);
  }
  return out.done(frames, t.kind);
}

/** Callers first: each stack from its last frame up. */
export function invert(t) {
  const out = new Builder(t.own.length, MOST);
  out.frame[0] = t.frame[0];
  for (let i = 0; i < t.parent.length; i += 1) {
    if (t.own.every((column) => column[i] === 0)) continue;
    let at = 0;
    for (let up = i; up > 0; up = t.parent[up]) at = out.child(at, t.frame[up]);
    out.add(at, t.own, i);
  }
  return { ...out.done(t.frames, t.kind), inverted: true };
}

/** Whether a frame is the one that a sandwich is of. */
const isFocus = (frame, focus) => frame.name === focus && frame.kind !== 'label';

/** The outermost nodes of a method: its own calls of itself lie below them. */
function outermost(t, focus) {
  const inside = new Uint8Array(t.parent.length);
  const out = [];
  for (let i = 1; i < t.parent.length; i += 1) {
    const within = inside[t.parent[i]];
    const is = isFocus(t.frames[t.frame[i]], focus);
    inside[i] = within || is ? 1 : 0;
    if (is && !within) out.push(i);
  }
  return { inside, nodes: out };
}

/** What a method calls, all its calls taken together; null where it is not in the tree. */
export function callees(t, focus) {
  const { inside, nodes } = outermost(t, focus);
  if (nodes.length === 0) return null;
  const out = new Builder(t.own.length, MOST);
  out.frame[0] = t.frame[nodes[0]];
  const tops = new Set(nodes);
  const place = new Uint32Array(t.parent.length);
  for (let i = 1; i < t.parent.length; i += 1) {
    if (!inside[i]) continue;
    place[i] = tops.has(i) ? 0 : out.child(place[t.parent[i]], t.frame[i]);
    out.add(place[i], t.own, i);
  }
  return out.done(t.frames, t.kind);
}

/** Who calls a method, callers below callees; null where it is not in the tree. */
export function callers(t, focus) {
  const { nodes } = outermost(t, focus);
  if (nodes.length === 0) return null;
  const out = new Builder(t.own.length, MOST);
  out.frame[0] = t.frame[nodes[0]];
  for (const node of nodes) {
    let at = 0;
    for (let up = t.parent[node]; up > 0; up = t.parent[up]) at = out.child(at, t.frame[up]);
    out.add(at, t.sum, node);
  }
  return out.done(t.frames, t.kind);
}
