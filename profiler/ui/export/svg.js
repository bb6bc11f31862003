// The graph as it is seen, as an SVG picture: it opens anywhere and has no script.
//
// In: a laid-out tree, its colours, the part that is zoomed to, a title and a subtitle. Out: text. A box has its name
// and share as a tooltip (`title`). Names are escaped, and characters that XML does not have are left out. Boxes
// narrower than half a pixel are left out. Pure.

import { percent, safe, short } from '../format.js';
import { value } from '../flame/moves.js';

const WIDTH = 1200;
const ROW = 17;

/** Text for XML. */
export function escaped(text) {
  return text.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '')
    .replace(/[&<>"']/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[c]);
}

/** The picture. */
export function svg(tree, layout, { colours, x0 = 0, x1 = 1, flame = false, title = '', subtitle = '', unit = 'ns' }) {
  const head = 44;
  const scale = WIDTH / (x1 - x0);
  const parts = [];
  let rows = 0;
  let first = Infinity;
  layout.lines.forEach((line, row) => {
    if (line.some((id) => layout.x1[id] > x0 && layout.x0[id] < x1)) { rows = Math.max(rows, row + 1); first = Math.min(first, row); }
  });
  for (let row = first; row < rows; row += 1) {
    const y = head + (flame ? rows - 1 - row : row - first) * ROW;
    for (const id of layout.lines[row]) {
      const left = Math.max(0, (layout.x0[id] - x0) * scale);
      const width = Math.min(WIDTH, (layout.x1[id] - x0) * scale) - left;
      if (width < 0.5) continue;
      const frame = tree.frames[tree.frame[id]];
      const name = safe(frame.name, 300);
      const keep = Math.floor((width - 6) / 6.4);
      const label = name.length <= keep ? name : short(name).length <= keep ? short(name) : keep > 3 ? `${short(name).slice(0, keep - 1)}…` : '';
      const figures = `${value(tree, tree.sum[0][id], unit)}, ${percent(tree.sum[0][0] > 0 ? tree.sum[0][id] / tree.sum[0][0] : 0)}`;
      parts.push(`<g><title>${escaped(`${name} (${figures})`)}</title><rect x="${left.toFixed(1)}" y="${y}" width="${Math.max(0.4, width - 0.6).toFixed(1)}" height="${ROW - 1}" fill="${hex(colours.palette[colours.of(id)])}"/>${label ? `<text x="${(left + 3).toFixed(1)}" y="${y + 12}">${escaped(label)}</text>` : ''}</g>`);
    }
  }
  const height = head + (rows - Math.min(first, rows)) * ROW + 8;
  return `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="#fff"/>
<text x="4" y="18" font-size="15">${escaped(safe(title, 200))}</text><text x="4" y="35" fill="#666">${escaped(safe(subtitle, 300))}</text>
${parts.join('\n')}
</svg>
`;
}

/** `#rrggbb` of an `oklch(l c h)`: not every reader of SVG knows that. */
export function hex(colour) {
  const [l, c, hue] = colour.match(/[\d.]+/g).map(Number);
  const [a, b] = [c * Math.cos((hue * Math.PI) / 180), c * Math.sin((hue * Math.PI) / 180)];
  const [x, y, z] = [l + 0.3963377774 * a + 0.2158037573 * b, l - 0.1055613458 * a - 0.0638541728 * b, l - 0.0894841775 * a - 1.291485548 * b].map((v) => v ** 3);
  const linear = [4.0767416621 * x - 3.3077115913 * y + 0.2309699292 * z, -1.2684380046 * x + 2.6097574011 * y - 0.3413193965 * z, -0.0041960863 * x - 0.7034186147 * y + 1.707614701 * z];
  const channel = (v) => Math.round(255 * Math.min(1, Math.max(0, v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055)));
  return `#${linear.map((v) => channel(v).toString(16).padStart(2, '0')).join('')}`;
}
