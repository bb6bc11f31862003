// The flame graph as a thing on the page: canvas, scroll, zoom, tooltip, focus.
//
// In: `show(result)` of compute.js with options, then what the user does. Out: pixels, and calls to `hooks`: `zoom`
// (the path's hash), `menu` (a node and a place), `unfold`, `say`. It keeps the zoom over a new answer by the path's hash. The
// canvas is as large as what is in sight, whatever the depth; it is drawn at most once a frame.

import { h } from '../dom.js';
import { colours } from './colour.js';
import { ROW, draw, nodeAt, rowTop } from './draw.js';
import { listen } from './input.js';
import { mirror } from './aria.js';
import { pathHashes } from './tree.js';
import { move, sentence } from './moves.js';
import { tip } from './tip.js';

const style = (element, name) => getComputedStyle(element).getPropertyValue(name).trim();

/** A graph. */
export class Graph {
  constructor(hooks) {
    this.hooks = hooks;
    this.canvas = h('canvas', { aria: { hidden: 'true' } });
    this.mirror = h('div', { class: 'quiet', role: 'tree', id: 'graph-tree', aria: { label: 'Call tree' } });
    this.tip = h('div', { class: 'tip', hidden: true });
    this.space = h('div', { class: 'graph-space' }, this.canvas);
    this.box = h('div', {
      class: 'graph', tabindex: '0', role: 'application',
      aria: { label: 'Flame graph. Arrows move, Enter zooms, Escape goes out, m opens the menu. The table of methods says the same.', owns: 'graph-tree' },
    }, this.space);
    this.element = h('div', { class: 'graph-host' }, this.box, this.mirror, this.tip);
    this.view = { x0: 0, x1: 1, top: 0, width: 0, height: 0, hover: -1, cursor: 0, focused: false, flame: false, ratio: 1 };
    this.context = this.canvas.getContext('2d', { alpha: false });
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.box);
    listen(this);
  }

  /** Takes an answer. One of the same shape (`options.shape`) as the last leaves all as it is: place, zoom, cursor. */
  show(result, options) {
    const { box, view, tree, zoomed } = this;
    const same = tree && options.shape === this.options.shape && view.flame === (options.order === 'flame');
    const cursor = same && tree !== result.tree && view.cursor > 0 ? this.hashOf(view.cursor) : '';
    const free = same && zoomed === -1 && options.zoom === this.options.zoom;
    const below = box.scrollHeight - box.scrollTop;
    this.tree = result.tree;
    this.layout = result.layout;
    this.options = options;
    if (tree !== this.tree) { this.hash = null; this.hint(-1); }
    view.flame = options.order === 'flame';
    const kept = tree === this.tree ? view.cursor : cursor ? this.find(cursor) : 0;
    view.cursor = 0;
    this.restyle();
    if (!free) this.setZoom(options.zoom, false);
    if (same) view.cursor = kept;
    this.resize();
    if (!same) box.scrollTop = view.flame ? box.scrollHeight : this.tree.callers ? this.rowPlace() : 0;
    else if (view.flame) box.scrollTop = box.scrollHeight - below;
    if (view.focused) this.reflect();
    this.paint();
  }

  /** In a sandwich the method is to be in sight. */
  rowPlace() {
    return Math.max(0, this.layout.row[0] * ROW - this.box.clientHeight / 2);
  }

  /** Reads the colours of the theme. */
  restyle() {
    const get = (name) => style(this.element, name);
    this.view.theme = {
      back: get('--graph-back'), ink: get('--graph-ink'), dust: get('--graph-dust'), found: get('--graph-found'),
      hover: get('--graph-hover'), focus: get('--graph-focus'), font: `12px ${get('--graph-font')}`,
    };
    if (this.tree) {
      this.view.colours = colours(this.tree, { ...this.options, dark: document.documentElement.dataset.theme === 'dark' });
      this.paint();
    }
  }

  /** Marks what a search found. */
  mark(found) {
    this.view.found = found?.frames ? found : null;
    this.paint();
  }

  resize() {
    if (!this.layout) return;
    const { view, canvas, box } = this;
    view.ratio = globalThis.devicePixelRatio || 1;
    view.width = box.clientWidth;
    view.height = box.clientHeight;
    this.space.style.height = `${Math.max(this.layout.rows * ROW + 2, 1)}px`;
    // A flame that is less high than the box stands on its floor.
    view.pad = view.flame ? Math.max(0, view.height - this.layout.rows * ROW) : 0;
    const [w, hgt] = [Math.round(view.width * view.ratio), Math.round(view.height * view.ratio)];
    if (canvas.width !== w || canvas.height !== hgt) { canvas.width = w; canvas.height = hgt; }
    canvas.style.width = `${view.width}px`;
    canvas.style.height = `${view.height}px`;
    this.paint();
  }

  /** Draws with the next frame. */
  paint() {
    if (this.frame || !this.layout) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.paintNow(); });
  }

  paintNow() {
    if (!this.layout || this.view.width === 0) return;
    this.view.top = this.box.scrollTop - (this.view.pad ?? 0);
    const begun = performance.now();
    this.boxes = draw(this.context, this.tree, this.layout, this.view);
    // What `cargo xtask bench page` reads; one mark, however often it is drawn.
    performance.clearMarks('painted');
    performance.mark('painted', { detail: { boxes: this.boxes, milliseconds: performance.now() - begun } });
  }

  /** Shows a node over the whole width; 0 is all. */
  zoomTo(node, tell = true) {
    const { x0, x1 } = this.layout;
    if (node < 0 || !(x1[node] > x0[node])) return;
    this.view.x0 = x0[node];
    this.view.x1 = x1[node];
    this.view.cursor = node;
    this.zoomed = node;
    this.inSight(node);
    this.paint();
    this.hooks.whole?.(node === 0);
    this.tellCursor();
    if (tell) {
      this.hooks.zoom?.(this.hashOf(node));
      this.hooks.say?.(node === 0 ? 'All of it.' : `Zoomed to ${sentence(this.tree, this.layout, node, this.options.unit)}`);
    }
  }

  /** What a click or Enter does: a fold opens, anything else is shown over the whole width. */
  choose(node) {
    if (node >= 0 && this.tree.frames[this.tree.frame[node]].kind === 'fold') this.hooks.unfold?.();
    else this.zoomTo(node);
  }

  /** Shows the node whose path has this hash, where there is one. */
  setZoom(hash, tell = false) {
    const node = hash ? this.find(hash) : 0;
    if (node !== this.zoomed || this.view.x0 !== this.layout.x0[node] || this.view.x1 !== this.layout.x1[node]) this.zoomTo(node, tell);
  }

  /** The node whose path has this hash, else the root. */
  find(hash) {
    for (let i = 1; i < this.tree.parent.length; i += 1) if (this.hashOf(i) === hash) return i;
    return 0;
  }

  hashOf(node) {
    this.hash ??= pathHashes(this.tree);
    return this.hash(node);
  }

  /** Widens or narrows what is seen, around a place of it. */
  scale(factor, at) {
    const { view } = this;
    const place = view.x0 + at * (view.x1 - view.x0);
    const width = Math.min(1, Math.max(1e-7, (view.x1 - view.x0) * factor));
    this.pan(place - at * width, width);
  }

  /** Shows so much of the width from a place on. */
  pan(x0, width = this.view.x1 - this.view.x0) {
    const { view } = this;
    view.x0 = Math.min(Math.max(0, x0), 1 - width);
    view.x1 = view.x0 + width;
    this.zoomed = -1;
    this.hooks.whole?.(width === 1);
    this.paint();
  }

  /** The node at a place of the canvas. */
  at(x, y) {
    return this.layout ? nodeAt(this.layout, this.view, x, y) : -1;
  }

  /** Moves the cursor by a key. */
  go(direction) {
    this.reveal(move(this.layout, this.view.cursor, direction, this.view));
  }

  /** Puts the cursor on a node, and the node in sight; `narrow` is the least of pixels that it is to have. */
  reveal(node, narrow = 0) {
    const { view, layout } = this;
    const own = layout.x1[node] - layout.x0[node];
    let width = view.x1 - view.x0;
    if (narrow > 0 && (own > width || (own / width) * view.width < narrow)) width = Math.min(1, own > width ? own : (own * view.width) / (8 * narrow));
    if (width !== view.x1 - view.x0 || layout.x1[node] <= view.x0 || layout.x0[node] >= view.x1) this.pan((layout.x0[node] + layout.x1[node] - width) / 2, width);
    view.cursor = node;
    this.inSight(node);
    this.tellCursor();
    this.paint();
  }

  /** Scrolls to the widest box that a search found, where none is in sight. */
  seek(found) {
    if (!found?.frames || !this.layout) return;
    const { tree, layout, box, view } = this;
    const seen = (node) => this.#top(node) >= box.scrollTop && this.#top(node) + ROW <= box.scrollTop + box.clientHeight;
    let widest = -1;
    for (let i = 1; i < tree.parent.length; i += 1) {
      if (!found.frames[tree.frame[i]] || layout.x1[i] <= view.x0 || layout.x0[i] >= view.x1) continue;
      const width = layout.x1[i] - layout.x0[i];
      if (seen(i) && (width / (view.x1 - view.x0)) * view.width >= 1) return;
      if (widest < 0 || width > layout.x1[widest] - layout.x0[widest]) widest = i;
    }
    if (widest > 0) this.inSight(widest);
  }

  /** Goes to the next node that a search found; -1 goes back. */
  nextFound(step) {
    const { found, cursor } = this.view;
    if (!found) return;
    const line = [...this.layout.lines].flatMap((ids) => [...ids]).filter((id) => found.frames[this.tree.frame[id]]);
    if (line.length === 0) return;
    const at = line.indexOf(cursor);
    this.view.focused = true;
    // What is too narrow to be seen is widened.
    this.reveal(line[at < 0 ? (step > 0 ? 0 : line.length - 1) : (at + step + line.length) % line.length], 6);
  }

  /** Goes one zoom out: to the caller of what is zoomed to. */
  out() {
    const node = this.zoomed > 0 ? this.tree.parent[this.zoomed] : 0;
    this.zoomTo(node);
  }

  /** Where a node's line is, from the top of all of them. */
  #top(node) {
    return rowTop(this.layout.row[node], this.layout.rows, { ...this.view, top: 0 }) + (this.view.pad ?? 0);
  }

  inSight(node) {
    const top = this.#top(node);
    const { scrollTop, clientHeight } = this.box;
    if (top < scrollTop) this.box.scrollTop = top - ROW;
    else if (top + ROW > scrollTop + clientHeight) this.box.scrollTop = top + 2 * ROW - clientHeight;
  }

  /** Tells readers where the cursor is. */
  tellCursor() {
    if (!this.view.focused) return;
    this.reflect();
    this.hooks.say?.(sentence(this.tree, this.layout, this.view.cursor, this.options.unit));
    this.hooks.cursor?.(this.view.cursor);
  }

  /** The tree for readers, as it is around the cursor. */
  reflect() {
    this.box.setAttribute('aria-activedescendant', mirror(this.mirror, this.tree, this.layout, this.view.cursor, this.options.unit));
  }

  /** Shows or hides the tooltip. */
  hint(node, x, y) {
    if (this.view.hover !== node) { this.view.hover = node; this.paint(); }
    if (node < 0) { this.tip.hidden = true; return; }
    tip(this.tip, this.tree, this.layout, node, this.options.unit);
    this.tip.hidden = false;
    const box = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 6))}px`;
    this.tip.style.top = `${y + 20 + box.height > innerHeight ? y - box.height - 10 : y + 20}px`;
  }

  close() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }
}
