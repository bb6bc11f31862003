// CPU time over time, or what else samples count, stacked; a range of it can be dragged.
//
// In: an answer of `/series`, its range, the part of it that is selected, lanes (stages and when they ran), and pauses of
// JVMs, which are marks under the bands. Out: a canvas, and `choose(from, until)` in milliseconds. Keys: arrows move the range, Shift and
// arrows its end, Escape drops it. The two time fields beside it say and take the same.

import { h } from './dom.js';
import { clock, duration, safe } from './format.js';
import { KINDS } from './kinds.js';
import { ticks } from './scale.js';
import { amount, kindOf } from './units.js';

const HEIGHT = 92;
/** Height of the largest step. */
const HIGHEST = HEIGHT - 8;
const LANE = 7;
/** Height of the marks of pauses. */
const MARKS = 6;
const LANES = 6;
/** Hues of the bands below the first, told apart by those who see few colours too: their lightness differs. */
const BANDS = [[250, 0.09, 0.66], [160, 0.1, 0.74], [320, 0.09, 0.62], [95, 0.11, 0.8], [200, 0.07, 0.56], [20, 0.1, 0.6], [280, 0.05, 0.78]];

/** The series with most samples by themselves, the others as one. Points are by their place in the range. */
export function bands(answer, by) {
  const kind = kindOf(answer);
  const step = answer.step_seconds * 1000;
  const from = Date.parse(answer.range.from);
  const until = Date.parse(answer.range.until);
  const first = Math.floor(from / step);
  const n = Math.min(20_000, Math.max(1, Math.ceil(until / step) - first));
  const rows = answer.series.map(({ labels, points }) => {
    const values = new Float64Array(n);
    let sum = 0;
    for (const point of points) {
      const at = Math.floor(Date.parse(point.time) / step) - first;
      if (at >= 0 && at < n) { values[at] += point[kind.amount]; sum += point[kind.amount]; }
    }
    return { name: labels[by] || (by ? `no ${by.replace('_', ' ')}` : kind.title), values, sum };
  }).sort((a, b) => b.sum - a.sum);
  if (rows.length > BANDS.length + 1) {
    const rest = rows.splice(BANDS.length);
    const values = new Float64Array(n);
    for (const row of rest) row.values.forEach((v, i) => { values[i] += v; });
    rows.push({ name: `${rest.length} others`, values, sum: rest.reduce((a, r) => a + r.sum, 0) });
  }
  let most = 0;
  for (let i = 0; i < n; i += 1) most = Math.max(most, rows.reduce((a, r) => a + r.values[i], 0));
  return { kind, rows, n, from: first * step, until: (first + n) * step, step, most };
}

/** What one second in each second is, of a kind that counts time. */
export const atOnce = (kind) => ({ cpu: 'cores', 'block-io': 'requests' })[kind.type] ?? 'threads';

/** Ticks of what `bands` makes: for each second. `at` is a part of the largest step. */
export function axis({ kind, most, step }) {
  const rate = most / (step / 1000);
  const all = kind.unit === 'ns' ? ticks(rate, atOnce(kind)) : ticks(rate, kind.unit, '/s');
  return all.map(({ value, text }) => ({ at: value / rate, text }));
}

/** Lines for what ran when, none over another; at most LANES lines. */
export function lanes(spans) {
  const ends = [];
  return [...spans].sort((a, b) => a.from - b.from).flatMap((span) => {
    let lane = ends.findIndex((end) => end <= span.from);
    if (lane < 0) { if (ends.length >= LANES) return []; lane = ends.length; }
    ends[lane] = span.until;
    return [{ ...span, lane }];
  });
}

/** The colour of a band. */
export function bandColour(at, kind = KINDS[0]) {
  const [hue, c, l] = at ? BANDS[(at - 1) % BANDS.length] : kind.colour;
  return `oklch(${l} ${c} ${hue})`;
}

/** A timeline. */
export class Timeline {
  constructor({ choose, pick }) {
    this.choose = choose;
    this.pick = pick;
    this.canvas = h('canvas', { aria: { hidden: 'true' } });
    this.readout = h('span', { class: 'readout muted' });
    this.legend = h('ul', { class: 'legend' });
    this.box = h('div', { class: 'timeline', tabindex: '0', role: 'slider', aria: { label: 'Time range. Arrows move it, Shift and arrows change its end, Escape drops it.', valuemin: '0', valuemax: '100', valuenow: '0' } }, this.canvas);
    this.element = h('div', { class: 'timeline-host' }, this.box, h('div', { class: 'timeline-foot' }, this.legend, this.readout));
    new ResizeObserver(() => this.paint()).observe(this.box);
    this.#listen();
  }

  /** Takes an answer. `window` is `{from, until}` in milliseconds, or null; `pauses` are `{from, until, name}`. */
  show(answer, by, window, { spans = [], pauses = [] } = {}) {
    this.data = bands(answer, by);
    this.lanes = lanes(spans);
    this.pauses = pauses;
    this.base = HEIGHT + (pauses.length > 0 ? MARKS + 1 : 0);
    this.legend.replaceChildren(...this.data.rows.map((row, at) => h('li', {}, h('i', { style: { background: bandColour(at, this.data.kind) } }), safe(row.name, 40))));
    this.select(window);
  }

  /** Of nothing: what it showed is no longer asked for. */
  clear() {
    this.data = null;
    this.legend.replaceChildren();
    this.readout.textContent = '';
    this.canvas.getContext('2d').clearRect(0, 0, this.canvas.width, this.canvas.height);
  }

  select(window) {
    this.window = window;
    if (this.data) {
      const { from, until } = window ?? this.data;
      this.box.setAttribute('aria-valuetext', `${clock(from)} to ${clock(until)}${window ? '' : ', all of it'}`);
      const share = (v) => String(Math.round(((v - this.data.from) / (this.data.until - this.data.from)) * 100));
      this.box.setAttribute('aria-valuenow', share(from));
    }
    this.paint();
  }

  #x(time) { return ((time - this.data.from) / (this.data.until - this.data.from)) * this.width; }

  #time(x) {
    const { from, until, step } = this.data;
    const at = from + (Math.min(this.width, Math.max(0, x)) / this.width) * (until - from);
    return { floor: Math.floor(at / step) * step, ceil: Math.ceil(at / step) * step, at };
  }

  paint() {
    if (!this.data || this.box.clientWidth === 0) return;
    const { data, canvas } = this;
    const depth = this.lanes.reduce((a, l) => Math.max(a, l.lane + 1), 0);
    const height = this.base + depth * LANE + 18;
    const ratio = devicePixelRatio || 1;
    this.width = this.box.clientWidth;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    const c = canvas.getContext('2d');
    const colour = (name) => getComputedStyle(this.box).getPropertyValue(name).trim();
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, this.width, height);
    const bar = this.width / data.n;
    const tops = new Float64Array(data.n).fill(HEIGHT);
    data.rows.forEach((row, at) => {
      c.fillStyle = bandColour(at, data.kind);
      row.values.forEach((v, i) => {
        if (v === 0) return;
        const size = (v / (data.most || 1)) * HIGHEST;
        tops[i] -= size;
        c.fillRect(i * bar, tops[i], Math.max(0.5, bar - (bar > 4 ? 1 : 0)), size);
      });
    });
    c.font = `11px ${colour('--font')}`;
    this.#scale(c, colour);
    this.#pauses(c, colour);
    this.#lanes(c, colour);
    this.#axis(c, colour, height);
    if (this.window) {
      const [a, b] = [this.#x(this.window.from), this.#x(this.window.until)];
      c.fillStyle = colour('--veil');
      c.fillRect(0, 0, Math.max(0, a), height - 16);
      c.fillRect(b, 0, Math.max(0, this.width - b), height - 16);
      c.fillStyle = colour('--accent');
      c.fillRect(a, 0, 1.5, height - 16);
      c.fillRect(b - 1.5, 0, 1.5, height - 16);
    }
  }

  /** Lines at round numbers, their names on ground that lets them be read over the bands. */
  #scale(c, colour) {
    c.textBaseline = 'middle';
    for (const { at, text } of axis(this.data)) {
      const y = Math.round(HEIGHT - at * HIGHEST);
      c.globalAlpha = 0.4;
      c.fillStyle = colour('--line-strong');
      c.fillRect(0, y, this.width, 1);
      c.globalAlpha = 1;
      c.fillStyle = colour('--veil');
      c.fillRect(0, y - 7, c.measureText(text).width + 6, 14);
      c.fillStyle = colour('--ink');
      c.fillText(text, 3, y + 0.5);
    }
  }

  #pauses(c, colour) {
    c.fillStyle = colour('--delay');
    // A short one is drawn as wide as can be seen: it is a mark, not a length.
    for (const { from, until } of this.pauses) c.fillRect(this.#x(from), HEIGHT + 1, Math.max(1, this.#x(until) - this.#x(from)), MARKS);
  }

  /** What stood still at a place, in words; empty where nothing did. */
  #pausesAt(x) {
    const near = this.pauses.filter((p) => this.#x(p.from) - 2 <= x && x <= Math.max(this.#x(p.until), this.#x(p.from)) + 2);
    if (near.length === 0) return '';
    const longest = near.reduce((a, p) => (p.until - p.from > a.until - a.from ? p : a));
    return `${near.length === 1 ? 'a pause' : `${near.length} pauses, the longest`} of ${duration((longest.until - longest.from) / 1000)} at ${clock(longest.from)}: ${safe(longest.name, 80)}`;
  }

  #lanes(c, colour) {
    for (const { from, until, lane, on } of this.lanes) {
      const x = this.#x(from);
      const width = Math.max(2, this.#x(until) - x - 1);
      c.fillStyle = on ? colour('--accent') : colour('--line-strong');
      c.fillRect(x, this.base + 3 + lane * LANE, width, LANE - 2);
    }
  }

  #axis(c, colour, height) {
    const { from, until } = this.data;
    c.fillStyle = colour('--muted');
    c.textBaseline = 'alphabetic';
    const steps = [10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400].map((s) => s * 1000);
    const step = steps.find((s) => (until - from) / s < this.width / 90) ?? steps[steps.length - 1];
    // Local midnights, not those of Greenwich.
    const shift = new Date(from).getTimezoneOffset() * 60_000;
    for (let at = Math.ceil((from - shift) / step) * step + shift; at < until; at += step) {
      const x = this.#x(at);
      if (x > this.width - 30) break;
      c.fillRect(x, this.base, 1, 3);
      c.fillText(step < 60_000 ? clock(at) : clock(at).slice(0, 5), x + 3, height - 4);
    }
  }

  #listen() {
    let begun = null;
    const x = (event) => event.clientX - this.canvas.getBoundingClientRect().left;
    this.box.addEventListener('pointerdown', (event) => {
      if (!this.data || event.button !== 0) return;
      begun = x(event);
      this.box.setPointerCapture(event.pointerId);
    });
    this.box.addEventListener('pointermove', (event) => {
      if (!this.data) return;
      const at = x(event);
      this.#read(at, event.clientY - this.canvas.getBoundingClientRect().top);
      if (begun === null || Math.abs(at - begun) < 3) return;
      this.select({ from: this.#time(Math.min(at, begun)).floor, until: this.#time(Math.max(at, begun)).ceil });
    });
    this.box.addEventListener('pointerup', (event) => {
      if (begun === null) return;
      const still = Math.abs(x(event) - begun) < 3;
      begun = null;
      if (!still) { this.choose(this.window.from, this.window.until); return; }
      const lane = this.#laneAt(x(event), event.clientY - this.canvas.getBoundingClientRect().top);
      if (lane) this.pick(lane);
      else this.choose(null);
    });
    this.box.addEventListener('pointercancel', () => { begun = null; });
    this.box.addEventListener('pointerleave', () => { this.readout.textContent = ''; });
    this.box.addEventListener('keydown', (event) => this.#key(event));
  }

  #laneAt(x, y) {
    return this.lanes.find((l) => Math.floor((y - this.base - 3) / LANE) === l.lane && x >= this.#x(l.from) - 1 && x <= Math.max(this.#x(l.until), this.#x(l.from) + 2));
  }

  #read(x, y) {
    const { kind, rows, step } = this.data;
    const lane = this.#laneAt(x, y);
    if (lane) { this.readout.textContent = `${safe(lane.name, 80)} · ${clock(lane.from)} to ${clock(lane.until)}`; return; }
    const paused = y >= HEIGHT && y <= this.base ? this.#pausesAt(x) : '';
    if (paused) { this.readout.textContent = paused; return; }
    const { floor } = this.#time(x);
    const i = Math.min(this.data.n - 1, Math.max(0, Math.round((floor - this.data.from) / step)));
    const sum = rows.reduce((a, r) => a + r.values[i], 0);
    const top = [...rows].filter((r) => r.values[i] > 0).sort((a, b) => b.values[i] - a.values[i]).slice(0, 3);
    this.readout.textContent = `${clock(floor)} · ${amount(sum, kind)} in ${duration(step / 1000)}${kind.unit === 'ns' ? ` (${(sum / (step / 1000)).toFixed(2)} ${atOnce(kind)})` : ''}${top.map((r) => ` · ${safe(r.name, 30)} ${amount(r.values[i], kind)}`).join('')}`;
  }

  #key(event) {
    if (!this.data) return;
    const { step, from, until } = this.data;
    const by = { ArrowLeft: -step, ArrowRight: step, PageDown: -10 * step, PageUp: 10 * step }[event.key];
    let next = null;
    if (event.key === 'Escape') next = undefined;
    else if (event.key === 'Home' && this.window) next = { from, until: from + this.window.until - this.window.from };
    else if (event.key === 'End' && this.window) next = { from: until - (this.window.until - this.window.from), until };
    else if (by) {
      const now = this.window ?? { from: until - Math.min(6 * step, until - from), until };
      next = event.shiftKey ? { from: now.from, until: Math.min(until, Math.max(now.from + step, now.until + by)) } : { from: now.from + by, until: now.until + by };
      if (next.from < from || next.until > until) next = now;
    }
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    if (next === undefined) this.choose(null);
    else this.choose(next.from, next.until);
  }
}
