// What colour a box has: by kind of code, by package, by self time, or by how the self time of two sides differs.
//
// In: a tree and the choice. Out: a palette of few colours and for each node (or frame) its place in it, so that
// drawing sets a colour only when it changes. Kinds have the same hues as the SVG download's. All boxes are light
// enough for dark text, in either theme. Pure.

import { packageOf } from '../format.js';
import { layer } from './shape.js';
import { hasSelf } from './tree.js';

/** Kinds in the legend: key, name, hue, chroma. */
export const KINDS = [
  ['java', 'Java', 150, 0.1],
  ['java-inlined', 'Java, inlined', 225, 0.08],
  ['java-interpreted', 'Java, interpreted', 118, 0.11],
  ['stub', 'JVM stub', 305, 0.08],
  ['jvm', 'JVM', 350, 0.08],
  ['native', 'native', 28, 0.11],
  ['kernel', 'kernel', 65, 0.12],
  ['python', 'Python', 190, 0.09],
  ['class', 'Java class', 95, 0.12],
  ['unknown', 'no name', 60, 0.004],
  ['label', 'group', 60, 0.012],
  ['fold', 'frames that all tasks share', 60, 0.03],
];

/** Steps of lightness within one colour: neighbours can be told apart. */
const STEPS = 4;
/** Steps of a scale. */
const SCALE = 12;

const oklch = (l, c, hue) => `oklch(${l.toFixed(3)} ${c.toFixed(3)} ${Math.round(hue)})`;

function hash(text) {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
}

const base = (dark) => (dark ? 0.69 : 0.815);

/** Which of KINDS a frame is. */
export function kindOf(frame) {
  if (frame.kind === 'native' && layer(frame) === 'jvm') return 'jvm';
  return frame.kind;
}

function byKind(t, dark) {
  const palette = KINDS.flatMap(([, , hue, c]) => Array.from({ length: STEPS }, (_, s) => oklch(base(dark) - 0.014 * s, c, hue)));
  const places = new Map(KINDS.map(([key], at) => [key, at]));
  const of = t.frames.map((f) => (places.get(kindOf(f)) ?? places.get('unknown')) * STEPS + (hash(f.name) % STEPS));
  return { palette, frame: Uint16Array.from(of) };
}

function byPackage(t, dark) {
  const HUES = 24;
  const palette = [];
  for (let hue = 0; hue < HUES; hue += 1) for (let s = 0; s < STEPS; s += 1) palette.push(oklch(base(dark) - 0.016 * s, 0.085, (hue * 360) / HUES + 8));
  palette.push(oklch(base(dark), 0.004, 60));
  const of = t.frames.map((f) => (f.kind === 'unknown' || f.kind === 'label' ? HUES * STEPS : (hash(packageOf(f)) % HUES) * STEPS + (hash(f.name) % STEPS)));
  return { palette, frame: Uint16Array.from(of) };
}

/** From a calm grey to a strong ember: a node's self time, against the largest. */
function bySelf(t, dark) {
  const palette = Array.from({ length: SCALE }, (_, s) => oklch(base(dark) + 0.05 - 0.012 * s, 0.012 + 0.0125 * s, 75 - 3.2 * s));
  const own = t.own[0];
  const most = own.reduce((a, b) => Math.max(a, b), 0) || 1;
  return { palette, node: Uint16Array.from(own, (v) => Math.round(Math.sqrt(v / most) * (SCALE - 1))) };
}

/** Hues of more and of less on the right side. */
export const CONTRASTS = { redblue: [25, 255], orangeblue: [62, 250] };

/**
 * By the change of self time: the frame that changed stands out, not the callers that it changed with. A caller in a tree of
 * callers has no self time: it has the colour of what comes through it. Grey where both sides are alike; the strongest
 * where the difference is a tenth of the larger total.
 */
function byDifference(t, dark, contrast) {
  const [more, less] = CONTRASTS[contrast] ?? CONTRASTS.redblue;
  const step = (hue, s) => oklch(base(dark) + 0.06 - (s / SCALE) * 0.14, 0.008 + (s / SCALE) * 0.15, hue);
  const palette = [];
  for (let s = SCALE; s > 0; s -= 1) palette.push(step(less, s));
  for (let s = 0; s <= SCALE; s += 1) palette.push(step(more, s));
  const whole = Math.max(t.sum[0][0], t.sum[1][0]) || 1;
  const place = (r, l) => {
    const d = (r - l) / whole / 0.1;
    const s = Math.min(SCALE, Math.ceil(Math.abs(d) ** 0.6 * SCALE - 0.2));
    return SCALE + (d < 0 ? -Math.max(0, s) : Math.max(0, s));
  };
  const of = (i) => { const [right, left] = hasSelf(t, i) ? t.own : t.sum; return place(right[i], left[i]); };
  return { palette, node: Uint16Array.from(t.frame, (_, i) => of(i)) };
}

/** Colours of a tree: `of(node)` is a place in `palette`. */
export function colours(t, { colour = 'kind', dark = false, contrast = 'redblue' } = {}) {
  const made = t.kind === 'diff' ? byDifference(t, dark, contrast)
    : colour === 'package' ? byPackage(t, dark)
      : colour === 'self' ? bySelf(t, dark) : byKind(t, dark);
  const of = made.node ? (i) => made.node[i] : (i) => made.frame[t.frame[i]];
  return { palette: made.palette, of };
}

/** What the colours mean: pairs of colour and words. */
export function legend(t, { colour = 'kind', dark = false, contrast = 'redblue', unit = 'ns' } = {}) {
  if (t.kind === 'diff') {
    const [more, less] = CONTRASTS[contrast] ?? CONTRASTS.redblue;
    const what = unit === 'ns' ? 'time' : unit;
    const own = t.inverted ? what : `self ${what}`;
    return [[oklch(base(dark) - 0.08, 0.158, more), `more ${own} on the right`], [oklch(base(dark) + 0.06, 0.008, more), 'about the same'], [oklch(base(dark) - 0.08, 0.158, less), `less ${own} on the right`]];
  }
  if (colour === 'self') return [[oklch(base(dark) + 0.05, 0.012, 75), 'little self time'], [oklch(base(dark) - 0.1, 0.15, 40), 'much self time']];
  if (colour === 'package') {
    const { palette, frame } = byPackage(t, dark);
    const weight = new Map();
    for (let i = 1; i < t.frame.length; i += 1) {
      const name = packageOf(t.frames[t.frame[i]]);
      const known = weight.get(name);
      if (known) known.sum += t.own[0][i];
      else weight.set(name, { sum: t.own[0][i], place: frame[t.frame[i]] });
    }
    return [...weight].sort((a, b) => b[1].sum - a[1].sum).slice(0, 8).map(([name, { place }]) => [palette[place - (place % STEPS)], name]);
  }
  const there = new Set(t.frames.map(kindOf));
  return KINDS.filter(([key]) => there.has(key)).map(([, name, hue, c]) => [oklch(base(dark), c, hue), name]);
}
