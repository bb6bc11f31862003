import assert from 'node:assert/strict';
import test from 'node:test';
import { colours, legend } from '../flame/colour.js';
import { compute } from '../flame/compute.js';
import { ROW, draw, firstAt, nodeAt } from '../flame/draw.js';
import { move, sentence } from '../flame/moves.js';
import { search } from '../flame/search.js';
import { fromColumns } from '../flame/tree.js';
import { methods } from '../methods.js';
import { bands, lanes } from '../timeline.js';
import { diff, large, tree } from './trees.js';

/** A canvas that remembers. */
function canvas() {
  const calls = { rects: [], texts: [], colours: new Set() };
  return { calls, setTransform() {}, strokeRect() {}, measureText: (t) => ({ width: t.length * 7 }),
    fillRect(...r) { calls.rects.push(r); calls.colours.add(this.fillStyle); }, fillText(t) { calls.texts.push(t); } };
}

const theme = { back: 'back', ink: 'ink', dust: 'dust', found: 'found', hover: 'h', focus: 'f', font: '12px x' };
const view = (t, more = {}) => ({ x0: 0, x1: 1, top: 0, width: 1000, height: 600, ratio: 1, hover: -1, theme, colours: colours(t, {}), ...more });

test('only what is a pixel wide and in sight is drawn by itself', () => {
  const { tree: t, layout } = compute(fromColumns(large(50_000)), { hide: [] });
  const context = canvas();
  const boxes = draw(context, t, layout, view(t));
  const wide = [...Array(t.parent.length).keys()].filter((i) => layout.row[i] * ROW < 600 && (layout.x1[i] - layout.x0[i]) * 1000 >= 1).length;
  assert.ok(boxes <= wide && boxes > 20, `${boxes} of ${wide}`);
  assert.ok(context.calls.rects.every(([x, , w]) => x >= 0 && x + w <= 1000.6 && w > 0));
  // Zoomed to a box, that box fills the width.
  const deep = layout.lines[5][0];
  const zoomed = canvas();
  draw(zoomed, t, layout, view(t, { x0: layout.x0[deep], x1: layout.x1[deep] }));
  assert.ok(zoomed.calls.rects.some(([x, y, w]) => x === 0 && y === 5 * ROW && w > 998));
});

test('names are text without tricks, short where there is no room', () => {
  const t = tree('java:org.apache.spark.scheduler.Task.run 5', 'java:\u202e<b>evil\n</b> 5');
  const { tree: shaped, layout } = compute(t, { hide: [] });
  const context = canvas();
  draw(context, shaped, layout, view(shaped, { width: 400 }));
  assert.deepEqual(context.calls.texts.sort(), ['Task.run', '\\u{202e}<b>evil\\u{a}</b>', 'total'].sort());
});

test('the node under the pointer', () => {
  const { tree: t, layout } = compute(tree('java:a;java:b 3', 'java:c 1'), { hide: [] });
  const name = (x, y, more) => { const id = nodeAt(layout, view(t, more), x, y); return id < 0 ? null : t.frames[t.frame[id]].name; };
  assert.equal(name(10, ROW + 3), 'a');
  assert.equal(name(760, ROW + 3), 'c');
  assert.equal(name(760, 2 * ROW + 3), null);
  assert.equal(name(10, 5, { flame: true }), 'b', 'the root is at the bottom');
  assert.equal(firstAt(Uint32Array.of(), layout.x1, 0), 0);
});

test('keys go where they point, and stay at the edge', () => {
  const { tree: t, layout } = compute(tree('java:a;java:b 3', 'java:a;java:d 1', 'java:c 2'), { hide: [] });
  const at = (name) => { for (let i = 0; i < t.parent.length; i += 1) if (t.frames[t.frame[i]].name === name) return i; return -1; };
  const go = (from, ...way) => t.frames[t.frame[way.reduce((n, d) => move(layout, n, d), at(from))]].name;
  assert.equal(go('total', 'down'), 'a');
  assert.equal(go('a', 'right'), 'c');
  assert.equal(go('a', 'right', 'right'), 'c');
  assert.equal(go('c', 'down'), 'c');
  assert.equal(go('a', 'down', 'right'), 'd');
  assert.equal(go('d', 'up', 'up', 'up'), 'total');
  assert.equal(go('d', 'first'), 'b');
  assert.equal(t.frames[t.frame[move(layout, at('a'), 'up', { flame: true })]].name, 'b');
  assert.equal(sentence(t, layout, at('a'), 'samples'), 'a, java: 66.7 %, 40 samples, self 0 samples');
});

test('a search says its share once for nested matches', () => {
  const t = tree('java:a;java:Match.x;java:match.y 3', 'java:b 1');
  assert.equal(search(t, 'match').share, 0.75);
  assert.equal(search(t, 'match').nodes, 2);
  assert.equal(search(t, 'Match').nodes, 1, 'a capital letter means itself');
  assert.equal(search(t, ''), null);
  assert.match(search(t, '(').error, /./);
  assert.match(search(t, 'x'.repeat(501)).error, /500/);
});

test('methods count a recursion once', () => {
  const rows = methods(tree('java:f;java:g;java:f 3', 'java:f 2', 'java:g 1'));
  const of = (name) => rows.find((r) => r.frame.name === name);
  assert.deepEqual([of('f').own[0], of('f').sum[0], of('f').sum[1]], [50, 50, 5]);
  assert.deepEqual([of('g').own[0], of('g').sum[0]], [10, 40]);
  assert.equal(rows.length, 2, 'the root is no method');
});

test('colours say more, less, alike', () => {
  const t = diff([null, 'total', 0, 0], [0, 'more', 1, 9], [0, 'less', 9, 1], [0, 'same', 5, 5]);
  const { palette, of } = colours(t, {});
  const hue = (i) => Number(palette[of(i)].split(' ')[2].replace(')', ''));
  const chroma = (i) => Number(palette[of(i)].split(' ')[1]);
  assert.equal(hue(1), 25);
  assert.equal(hue(2), 255);
  assert.ok(chroma(3) < 0.02 && chroma(1) > 0.1 && chroma(2) > 0.1);
  assert.equal(colours(t, { contrast: 'orangeblue' }).palette.at(-1).includes(' 62)'), true);
  for (const colour of ['kind', 'package', 'self']) {
    const plain = tree('java:a.b.C.d 3', 'kernel:k 1', 'strange:x 1');
    const made = colours(plain, { colour, dark: true });
    for (let i = 0; i < plain.parent.length; i += 1) assert.match(made.palette[made.of(i)], /^oklch/);
    assert.ok(legend(plain, { colour }).length > 0);
  }
});

test('a comparison colours the frame that changed, not its callers', () => {
  const t = diff([null, 'total', 0, 0], [0, 'caller', 5, 5], [1, 'changed', 1, 5], [0, 'smaller', 3, 1]);
  const chroma = (tree, name) => {
    const { palette, of } = colours(tree, {});
    const i = [...tree.frame].findIndex((frame) => tree.frames[frame].name === name);
    return Number(palette[of(i)].split(' ')[1]);
  };
  assert.ok(chroma(t, 'caller') < 0.02 && chroma(t, 'total') < 0.02, 'their self time is the same');
  assert.ok(chroma(t, 'changed') > 0.1 && chroma(t, 'smaller') > 0.1);
  assert.equal(legend(t)[0][1], 'more self time on the right');
  // With callers first a caller has no self time: it is coloured by what comes through it.
  const { tree: inverted } = compute(t, { invert: true });
  const [way] = [...inverted.parent.keys()].filter((i) => inverted.parent[i] > 0);
  assert.ok(Number(colours(inverted, {}).palette[colours(inverted, {}).of(way)].split(' ')[1]) > 0.1);
  assert.equal(legend(inverted)[0][1], 'more time on the right');
  const { tree: both } = compute(t, { focus: 'changed' });
  assert.ok(both.callers > 0 && chroma(both, 'caller') > 0.1);
  assert.match(sentence(t, null, 2, 'bytes'), /: left 1 bytes, right 5 bytes, self left 1 bytes, right 5 bytes$/);
  assert.equal(legend(t, { unit: 'bytes' })[0][1], 'more self bytes on the right');
  assert.match(sentence(t, null, 2), /: left 1\.00 s, right 5\.00 s, self left 1\.00 s, right 5\.00 s$/);
  assert.doesNotMatch(sentence(inverted, null, way), /self/);
});

test('the timeline stacks what there is, and stages do not cover one another', () => {
  const point = (time, cpu_seconds) => ({ time: new Date(time).toISOString(), cpu_seconds });
  const answer = { step_seconds: 10, range: { from: new Date(0).toISOString(), until: new Date(40_000).toISOString() }, series: [
    { labels: { role: 'driver' }, points: [point(0, 1), point(30_000, 2)] }, { labels: {}, points: [point(30_000, 4), point(90_000, 99)] }] };
  const made = bands(answer, 'role');
  assert.deepEqual(made.rows.map((r) => [r.name, [...r.values]]), [['no role', [0, 0, 0, 4]], ['driver', [1, 0, 0, 2]]]);
  assert.equal(made.most, 6);
  const many = { ...answer, series: Array.from({ length: 30 }, (_, i) => ({ labels: { role: `r${i}` }, points: [point(0, i + 1)] })) };
  assert.deepEqual([bands(many, 'role').rows.length, bands(many, 'role').rows.at(-1).name], [8, '23 others']);
  const spans = lanes([{ from: 5, until: 9 }, { from: 0, until: 6 }, { from: 6, until: 7 }]);
  assert.deepEqual(spans.map((s) => s.lane), [0, 1, 0]);
});
