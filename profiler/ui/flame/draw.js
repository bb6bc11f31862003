// Draws a layout on a canvas.
//
// In: a 2D context, a laid-out tree, and the view: what part of the width (`x0` to `x1`), which rows, colours, what
// is searched, focused, hovered. Out: pixels, and how many boxes there were. Only rows in sight are visited, in them
// only nodes in sight (binary search), and only boxes of a pixel or more are drawn one by one; runs of narrower
// ones are one faint box, so that nothing seems to be missing. Pure but for the context.

import { safe, short } from '../format.js';

/** Height of a row, in pixels. */
export const ROW = 19;
/** Narrowest box with a name. */
const NAMED = 28;

/** The first node of a line that ends right of x. */
export function firstAt(line, x1, x) {
  let low = 0;
  let high = line.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (x1[line[middle]] <= x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Where a row is drawn. In a flame the root is at the bottom. */
export function rowTop(row, rows, view) {
  return (view.flame ? rows - 1 - row : row) * ROW - view.top;
}

/** The node at a point of the canvas, or -1. */
export function nodeAt(layout, view, x, y) {
  const place = Math.floor((y + view.top) / ROW);
  const row = view.flame ? layout.rows - 1 - place : place;
  const line = layout.lines[row];
  if (!line) return -1;
  const at = view.x0 + (x / view.width) * (view.x1 - view.x0);
  const id = line[firstAt(line, layout.x1, at)];
  return id !== undefined && layout.x0[id] <= at ? id : -1;
}

const shown = new WeakMap();

/** A frame's names, whole and short, made once. */
function names(frame) {
  let out = shown.get(frame);
  if (!out) {
    const whole = safe(frame.name, 300);
    const brief = short(whole);
    out = { whole, brief, width: 0, briefWidth: 0, font: '' };
    shown.set(frame, out);
  }
  return out;
}

/** The text that fits, or nothing. */
function fitting(context, frame, room, font) {
  const name = names(frame);
  if (name.font !== font) {
    name.width = context.measureText(name.whole).width;
    name.briefWidth = name.brief === name.whole ? name.width : context.measureText(name.brief).width;
    name.font = font;
  }
  if (name.width <= room) return name.whole;
  if (name.briefWidth <= room) return name.brief;
  const keep = Math.floor((room / name.briefWidth) * name.brief.length) - 2;
  if (keep < 3) return '';
  // Half a surrogate pair would be drawn as a box.
  return `${name.brief.slice(0, keep).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** Draws all in sight. */
export function draw(context, tree, layout, view) {
  const { width, height, x0: from, x1: until, colours, found, theme, ratio } = view;
  const scale = width / (until - from);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = theme.back;
  context.fillRect(0, 0, width, height);
  context.font = theme.font;
  context.textBaseline = 'middle';
  const texts = [];
  let boxes = 0;
  for (let row = 0; row < layout.rows; row += 1) {
    const top = rowTop(row, layout.rows, view);
    if (top + ROW <= 0 || top >= height) continue;
    const line = layout.lines[row];
    let dust = -1; // where a run of narrow boxes began
    let dustEnd = -1;
    let dustFound = false;
    const settle = () => {
      if (dust < 0) return;
      context.globalAlpha = dustFound ? 1 : 0.55;
      context.fillStyle = dustFound ? theme.found : theme.dust;
      context.fillRect(dust, top, Math.max(0.5, dustEnd - dust), ROW - 1);
      context.globalAlpha = 1;
      dust = -1;
      dustFound = false;
    };
    for (let at = firstAt(line, layout.x1, from); at < line.length; at += 1) {
      const id = line[at];
      if (layout.x0[id] >= until) break;
      const left = Math.max(0, (layout.x0[id] - from) * scale);
      const right = Math.min(width, (layout.x1[id] - from) * scale);
      const hit = found ? found.frames[tree.frame[id]] === 1 : false;
      if (right - left < 1) {
        if (dust >= 0 && left - dustEnd > 0.75) settle();
        if (dust < 0) dust = left;
        dustEnd = right;
        dustFound ||= hit;
        continue;
      }
      settle();
      boxes += 1;
      context.globalAlpha = found && !hit ? 0.32 : 1;
      context.fillStyle = hit ? theme.found : colours.palette[colours.of(id)];
      // The gap is taken from what the box has, half a pixel from narrow ones.
      context.fillRect(left, top, right - left - (right - left > 3 ? 1 : 0.25), ROW - 1);
      if (right - left >= NAMED) texts.push(id, left, right, top, found && !hit ? 0.6 : 1);
    }
    settle();
  }
  context.globalAlpha = 1;
  context.fillStyle = theme.ink;
  for (let i = 0; i < texts.length; i += 5) {
    const [id, left, right, top, alpha] = texts.slice(i, i + 5);
    const text = fitting(context, tree.frames[tree.frame[id]], right - left - 9, theme.font);
    if (!text) continue;
    if (context.globalAlpha !== alpha) context.globalAlpha = alpha;
    context.fillText(text, left + 4, top + ROW / 2, right - left - 7);
  }
  context.globalAlpha = 1;
  outline(context, layout, view, view.hover, theme.hover, 1);
  if (view.focused) outline(context, layout, view, view.cursor, theme.focus, 2);
  return boxes;
}

function outline(context, layout, view, id, colour, thick) {
  if (id < 0 || id === undefined || id >= layout.x0.length) return;
  const scale = view.width / (view.x1 - view.x0);
  const left = Math.max(0, (layout.x0[id] - view.x0) * scale);
  const right = Math.min(view.width, (layout.x1[id] - view.x0) * scale);
  if (right < left) return;
  context.strokeStyle = colour;
  context.lineWidth = thick;
  const half = thick / 2;
  context.strokeRect(left + half, rowTop(layout.row[id], layout.rows, view) + half, Math.max(1, right - left - thick - 0.5), ROW - 1 - thick);
}
