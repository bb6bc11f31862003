// A call tree in typed arrays.
//
// In: the daemon's columns (`/flamegraph?columns=1`), or the nodes of a comparison (`/diff?nodes=1`). Out: a tree
// `{parent, frame, own, sum, frames}`: a node's caller, its frame, and columns of numbers: `own` without what it
// calls, `sum` with it. A plain tree has the columns value and samples; one of a comparison right and left. A
// caller stands before its callees, the root first; with callers first (`inverted`) it is the other way round. Pure.

/** Sums of a node and all below it, from what each has by itself. */
export function accumulate(parent, own) {
  const sum = Float64Array.from(own);
  for (let i = sum.length - 1; i > 0; i -= 1) sum[parent[i]] += sum[i];
  return sum;
}

function tree(parent, frame, own, frames, kind) {
  return { parent, frame, own, sum: own.map((column) => accumulate(parent, column)), frames, kind };
}

/** Whether a node's own numbers are its self time. Of callers, in a tree that begins with callees, they are not. */
export const hasSelf = (t, node) => !t.inverted && !(t.callers && node >= t.callers);

/** The tree of a flame graph's answer. Places that lead nowhere are an error. */
export function fromColumns(answer) {
  const { columns, frames } = answer;
  const n = columns.parent.length;
  const parent = Uint32Array.from(columns.parent);
  const frame = Uint32Array.from(columns.frame);
  for (let i = 0; i < n; i += 1) {
    if ((i > 0 && parent[i] >= i) || frame[i] >= frames.length) throw new Error(`node ${i} of the answer is not right`);
  }
  const own = [Float64Array.from(columns.self), Float64Array.from(columns.self_samples)];
  return tree(parent, frame, own, frames, 'plain');
}

/** The tree of a comparison's answer: column 0 is the right side, 1 the left one. */
export function fromDiff(answer) {
  const nodes = answer.nodes ?? [];
  const places = new Map();
  const frames = [];
  const parent = new Uint32Array(nodes.length);
  const frame = new Uint32Array(nodes.length);
  const own = [new Float64Array(nodes.length), new Float64Array(nodes.length)];
  nodes.forEach((node, i) => {
    const key = `${node.kind}\u0000${node.module ?? ''}\u0000${node.name}`;
    let at = places.get(key);
    if (at === undefined) {
      at = frames.length;
      places.set(key, at);
      frames.push({ name: node.name, kind: node.kind, module: node.module });
    }
    if (i > 0 && !(node.parent < i)) throw new Error(`node ${i} of the answer is not right`);
    parent[i] = node.parent ?? 0;
    frame[i] = at;
    [own[1][i], own[0][i]] = node.self;
  });
  return tree(parent, frame, own, frames, 'diff');
}

/** Makes a tree by adding to paths; equal siblings are one node. */
export class Builder {
  constructor(columns, most = Infinity) {
    this.parent = [0];
    this.frame = [0];
    this.own = Array.from({ length: columns }, () => [0]);
    this.places = new Map();
    this.most = most;
  }

  /** The callee with this frame, made where there is none. */
  child(parent, frame) {
    const key = parent * 0x200000 + frame;
    let id = this.places.get(key);
    if (id === undefined) {
      if (this.parent.length >= this.most) return parent;
      id = this.parent.length;
      this.places.set(key, id);
      this.parent.push(parent);
      this.frame.push(frame);
      for (const column of this.own) column.push(0);
    }
    return id;
  }

  /** Adds a node's own numbers, or others of its tree. */
  add(id, columns, from) {
    for (let c = 0; c < columns.length; c += 1) this.own[c][id] += columns[c][from];
  }

  done(frames, kind) {
    const own = this.own.map((column) => Float64Array.from(column));
    return tree(Uint32Array.from(this.parent), Uint32Array.from(this.frame), own, frames, kind);
  }
}

/** The names from the root down to a node, the root left out. */
export function pathOf(t, node) {
  const out = [];
  for (let at = node; at > 0; at = t.parent[at]) out.unshift(t.frames[t.frame[at]]);
  return out;
}

function mix(hash, value) {
  let h = Math.imul(hash ^ value, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

function hashText(text, seed) {
  let h = seed;
  for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
}

/** A short name for each node's path, the same in another answer with that path. */
export function pathHashes(t) {
  const names = t.frames.map((f) => [hashText(f.name, 0x811c9dc5), hashText(f.name, 0x9dc5811c)]);
  const high = new Uint32Array(t.parent.length);
  const low = new Uint32Array(t.parent.length);
  for (let i = 1; i < t.parent.length; i += 1) {
    const [a, b] = names[t.frame[i]];
    high[i] = mix(high[t.parent[i]] + 1, a);
    low[i] = mix(low[t.parent[i]] + 1, b);
  }
  return (i) => (i === 0 ? '' : high[i].toString(36) + low[i].toString(36).padStart(7, '0'));
}
