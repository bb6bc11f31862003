// Contrast as WCAG 2.2 reckons it: 4.5 for text, 3 for what is told by its colour or its edge.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { hex } from '../export/svg.js';
import { CONTRASTS, KINDS, colours } from '../flame/colour.js';

const css = ['style.css', 'graph.css'].map((name) => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')).join('\n');

/** The colours of a rule, by name. */
function rules(selector) {
  const out = {};
  for (const [, body] of css.matchAll(new RegExp(`^${selector} \\{([^}]*)\\}`, 'gm'))) {
    for (const [, name, value] of body.matchAll(/--([\w-]+):\s*([^;]+);/g)) out[name] = value.trim();
  }
  return out;
}

const light = rules(':root');
const THEMES = { light, dark: { ...light, ...rules(':root\\[data-theme="dark"\\]') } };

function luminance(colour) {
  const digits = colour.length === 4 ? [...colour.slice(1)].map((c) => c + c) : colour.slice(1).match(/../g);
  const [r, g, b] = digits.map((d) => parseInt(d, 16) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function ratio(a, b) {
  const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
}

test('ratios are those of the standard', () => {
  assert.equal(ratio('#000', '#ffffff').toFixed(2), '21.00');
  assert.equal(ratio('#777777', '#fff').toFixed(2), '4.48');
});

const TEXT = [['ink', 'back'], ['ink', 'raised'], ['ink', 'bar'], ['ink', 'accent-soft'], ['muted', 'back'], ['muted', 'raised'], ['muted', 'accent-soft'],
  ['accent', 'back'], ['accent', 'raised'], ['accent', 'accent-soft'], ['back', 'accent'], ['bad', 'back'], ['bad', 'raised'], ['graph-ink', 'graph-found']];
const SHAPES = [['line-strong', 'raised'], ['line-strong', 'back'], ['user', 'back'], ['system', 'back'], ['delay', 'back'], ['python', 'back'], ['throttled', 'back'], ['blocked', 'back'],
  ['shuffle', 'back'], ['storage', 'back'], ['network', 'back'], ['lock', 'back'], ['gc', 'back'], ['sleep', 'back'], ['graph-focus', 'graph-back'], ['accent', 'back']];

for (const [name, theme] of Object.entries(THEMES)) {
  test(`text, edges and parts can be told from what they stand on, ${name}`, () => {
    for (const [pairs, least] of [[TEXT, 4.5], [SHAPES, 3]]) {
      for (const [a, b] of pairs) assert.ok(ratio(theme[a], theme[b]) >= least, `${a} on ${b}: ${ratio(theme[a], theme[b]).toFixed(2)}`);
    }
  });

  test(`names can be read on every box, ${name}`, () => {
    const frames = KINDS.map(([kind]) => ({ kind, name: kind, module: '' }));
    const tree = { kind: 'plain', frames, frame: frames.map((_, i) => i), own: [frames.map(() => 1), frames.map(() => 1)], sum: [[1], [1]] };
    const looks = [...['kind', 'package', 'self'].map((colour) => [tree, { colour }]), ...Object.keys(CONTRASTS).map((contrast) => [{ ...tree, kind: 'diff' }, { contrast }])];
    for (const [t, look] of looks) {
      for (const colour of colours(t, { ...look, dark: name === 'dark' }).palette) {
        const is = ratio(hex(colour), theme['graph-ink']);
        assert.ok(is >= 4.5, `${JSON.stringify(look)} ${colour}: ${is.toFixed(2)}`);
      }
    }
  });
}
