// Trees for the tests, made of folded stacks; frames are `kind:name`.

import { fromColumns, fromDiff } from '../flame/tree.js';

/** The daemon's columns for stacks `kind:name;kind:name count`. */
export function columns(stacks, weight = 10) {
  const frames = [{ name: 'total', kind: 'label' }];
  const out = { parent: [0], frame: [0], self: [0], total: [0], self_samples: [0], total_samples: [0] };
  const places = new Map();
  const frameOf = (text) => {
    const at = text.indexOf(':');
    const [kind, module] = text.slice(0, at).split('@');
    const name = text.slice(at + 1);
    let id = frames.findIndex((f) => f.kind === kind && f.name === name && (f.module ?? '') === (module ?? ''));
    if (id < 0) { id = frames.length; frames.push({ name, kind, ...(module ? { module } : {}) }); }
    return id;
  };
  for (const stack of stacks) {
    const cut = stack.lastIndexOf(' ');
    const count = Number(stack.slice(cut + 1));
    let node = 0;
    for (const text of stack.slice(0, cut).split(';')) {
      const frame = frameOf(text);
      const key = `${node} ${frame}`;
      if (!places.has(key)) {
        places.set(key, out.parent.length);
        out.parent.push(node); out.frame.push(frame);
        for (const column of ['self', 'total', 'self_samples', 'total_samples']) out[column].push(0);
      }
      node = places.get(key);
    }
    out.self[node] += count * weight;
    out.self_samples[node] += count;
  }
  return { frames, columns: out };
}

export const tree = (...stacks) => fromColumns(columns(stacks));

/** A comparison's tree of `[parent, name, left, right]`. */
export const diff = (...rows) => fromDiff({ nodes: rows.map(([parent, name, left, right]) => ({ parent, name, kind: parent === null ? 'label' : 'java', module: '', self: [left, right] })) });

/** `path value` of every node with its own time, for comparing shapes. */
export function stacks(t, column = 0) {
  const paths = [''];
  const out = [];
  for (let i = 0; i < t.parent.length; i += 1) {
    const { name } = t.frames[t.frame[i]];
    paths[i] = i === 0 ? '' : [paths[t.parent[i]], name].filter(Boolean).join(';');
    if (t.own[column][i]) out.push(`${paths[i] || name} ${t.own[column][i]}`);
  }
  return out.sort();
}

/** A tree of so many nodes, Spark-like in depth; the same each time. */
export function large(nodes, depth = 80) {
  const frames = [{ name: 'total', kind: 'label' }];
  for (let i = 0; i < 4000; i += 1) frames.push({ name: `org.apache.spark.sql.package${i % 40}.Class${i}.method${i % 7}`, kind: ['java', 'java-inlined', 'native', 'kernel'][i % 4], module: i % 4 === 2 ? 'libjvm.so' : '' });
  const out = { parent: [0], frame: [0], self: [0], total: [0], self_samples: [0], total_samples: [0] };
  const level = [0];
  let seed = 1;
  const random = (n) => { seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0; return Math.floor((seed / 4294967296) * n); };
  while (out.parent.length < nodes) {
    let at = random(3) === 0 ? random(out.parent.length) : out.parent.length - 1;
    if (level[at] >= depth) at = random(Math.min(out.parent.length, 200));
    level.push(level[at] + 1);
    out.parent.push(at);
    out.frame.push(1 + random(4000));
    const own = random(4) === 0 ? 1 + random(40) : 0;
    out.self.push(own * 10_101_010); out.self_samples.push(own); out.total.push(0); out.total_samples.push(0);
  }
  return { frames, columns: out };
}
