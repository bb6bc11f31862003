import assert from 'node:assert/strict';
import test from 'node:test';
import { gunzipSync } from 'node:zlib';
import { folded } from '../export/folded.js';
import { pprof } from '../export/pprof.js';
import { speedscope } from '../export/speedscope.js';
import { escaped, hex, svg } from '../export/svg.js';
import { colours } from '../flame/colour.js';
import { compute } from '../flame/compute.js';
import { diff, tree } from './trees.js';

const HOSTILE = '</text><script>alert(1)</script>;\n"\u0000\u202e';
const job = () => tree('java:Thread.run;java:Job.work 3', `java:Thread.run;native@libc.so.6:${HOSTILE.replace(/;/g, '')} 2`);

test('folded', () => {
  assert.equal(folded(tree('java:a;java:b 3', 'java:a 1')), 'a 10\na;b 30\n');
  assert.equal(folded(diff([null, 'total', 0, 0], [0, 'x;y\n', 1.5, 2])), 'x:y  1500000 2000000\n');
});

test('a comparison of what is no time is in the unit of its kind', () => {
  const t = diff([null, 'total', 0, 0], [0, 'x', 1.5, 2000]);
  assert.equal(folded(t, 'bytes'), 'x 2 2000\n');
  assert.equal(speedscope(t, 'n', 'bytes').profiles[0].unit, 'bytes');
  assert.equal(speedscope(t, 'n').profiles[0].unit, 'seconds');
});

test('speedscope', () => {
  const out = speedscope(job(), 'n', 'ns');
  const [profile] = out.profiles;
  assert.deepEqual(profile.weights, [30, 20]);
  assert.equal(profile.endValue, 50);
  assert.deepEqual(profile.samples[0].map((f) => out.shared.frames[f].name), ['Thread.run', 'Job.work']);
  assert.equal(speedscope(diff([null, 't', 0, 0], [0, 'a', 1, 2]), 'n').profiles.length, 2);
});

/** Reads protobuf: field -> values. */
function fields(bytes) {
  const out = {};
  let at = 0;
  const varint = () => { let v = 0n; let s = 0n; for (;;) { const b = bytes[at++]; v |= BigInt(b & 127) << s; if (b < 128) return Number(v); s += 7n; } };
  while (at < bytes.length) {
    const tag = varint();
    const value = (tag & 7) === 2 ? (() => { const n = varint(); at += n; return bytes.subarray(at - n, at); })() : varint();
    (out[tag >> 3] ??= []).push(value);
  }
  return out;
}

test('pprof', async () => {
  const out = fields(gunzipSync(await pprof(job(), { unit: 'ns', from: 1_700_000_000_000, until: 1_700_000_010_000 })));
  const texts = out[6].map((b) => new TextDecoder().decode(b));
  assert.equal(texts[0], '');
  const [type] = out[1].map(fields);
  assert.deepEqual([texts[type[1][0]], texts[type[2][0]]], ['cpu', 'nanoseconds']);
  const sample = fields(out[2][0]);
  const packed = (b) => { const values = []; let v = 0; let s = 0; for (const byte of b) { v += (byte & 127) * 2 ** s; if (byte < 128) { values.push(v); v = 0; s = 0; } else s += 7; } return values; };
  const functions = new Map(out[5].map(fields).map((f) => [f[1][0], texts[f[2][0]]]));
  assert.deepEqual(packed(sample[1][0]).map((id) => functions.get(id)), ['Job.work', 'Thread.run'], 'the leaf first');
  assert.deepEqual(packed(sample[2][0]), [30, 3]);
  assert.deepEqual([out[9][0], out[10][0]], [1.7e18, 1e10]);
});

test('an SVG runs no script and is well formed', () => {
  const { tree: t, layout } = compute(job(), { hide: [] });
  const text = svg(t, layout, { colours: colours(t, {}), title: HOSTILE, subtitle: '&' });
  assert.ok(!text.includes('<script') && !text.includes('\u0000') && !text.includes('\u202e'));
  assert.equal(text.match(/<g>/g).length, text.match(/<\/g>/g).length);
  assert.ok(text.includes('Job.work (30') || text.includes('Job.work (0 µs, 60.0 %)'), text);
  assert.equal(escaped('\ud800<'), '&lt;');
});

test('colours for those who do not know oklch', () => {
  assert.equal(hex('oklch(1 0 0)'), '#ffffff');
  assert.equal(hex('oklch(0 0 0)'), '#000000');
  assert.match(hex('oklch(0.627955 0.257683 29.2338)'), /^#ff0[0-3]0[0-3]$/);
});
