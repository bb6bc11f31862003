// pprof's profile.proto, for `go tool pprof` and its kin; compressed where the browser can.
//
// In: a tree as it is shown, the unit, the kind, the window. Out: bytes. A frame is a function and a location; a stack's leaf
// comes first. Of a comparison the values are left and right. Pure but for the compression. The format:
// github.com/google/pprof, proto/profile.proto.

import { KINDS } from '../kinds.js';

/** Writes protobuf's wire format. */
class Writer {
  constructor() { this.bytes = []; }

  varint(value) {
    let v = BigInt(Math.max(0, Math.round(value)));
    while (v > 127n) { this.bytes.push(Number(v & 127n) | 128); v >>= 7n; }
    this.bytes.push(Number(v));
  }

  number(field, value) {
    if (!value) return;
    this.varint(field << 3);
    this.varint(value);
  }

  block(field, bytes) {
    this.varint((field << 3) | 2);
    this.varint(bytes.length);
    for (const b of bytes) this.bytes.push(b);
  }

  packed(field, values) {
    const inner = new Writer();
    for (const v of values) inner.varint(v);
    this.block(field, inner.bytes);
  }
}

const message = (fill) => { const w = new Writer(); fill(w); return w.bytes; };

/** The profile, not compressed. */
export function profile(t, { unit = 'ns', kind: of = KINDS[0], from = 0, until = 0 } = {}) {
  const texts = [''];
  const known = new Map([['', 0]]);
  const text = (s) => {
    if (!known.has(s)) { known.set(s, texts.length); texts.push(s); }
    return known.get(s);
  };
  const diff = t.kind === 'diff';
  // Of a comparison times are seconds.
  const one = of.unit === 'ns' ? 1e9 : 1;
  const types = diff ? [['left', of.value[1]], ['right', of.value[1]]] : [unit === 'samples' ? ['samples', 'count'] : of.value, ['samples', 'count']];
  const values = (i) => (diff ? [t.own[1][i] * one, t.own[0][i] * one] : [t.own[0][i], t.own[1][i]]);
  const out = new Writer();
  const kind = (field, [name, unit]) => out.block(field, message((w) => { w.number(1, text(name)); w.number(2, text(unit)); }));
  for (const type of types) kind(1, type);
  for (let i = 0; i < t.parent.length; i += 1) {
    const own = values(i);
    if (!own.some((v) => v > 0)) continue;
    const stack = [];
    for (let at = i; at > 0; at = t.parent[at]) stack.push(t.frame[at] + 1);
    out.block(2, message((w) => { w.packed(1, stack); w.packed(2, own); }));
  }
  t.frames.forEach((f, i) => {
    out.block(4, message((w) => { w.number(1, i + 1); w.block(4, message((line) => { line.number(1, i + 1); line.number(2, f.line ?? 0); })); }));
    out.block(5, message((w) => { w.number(1, i + 1); w.number(2, text(f.name)); w.number(3, text(f.name)); w.number(4, text(f.module ?? '')); }));
  });
  if (from) out.number(9, from * 1e6);
  if (until > from) out.number(10, (until - from) * 1e6);
  const encoder = new TextEncoder();
  for (const s of texts) out.block(6, encoder.encode(s));
  return Uint8Array.from(out.bytes);
}

/** The profile, compressed as pprof's tools expect it. */
export async function pprof(t, options) {
  const stream = new Blob([profile(t, options)]).stream().pipeThrough(new CompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
