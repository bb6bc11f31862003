// Saves what is shown as a file.
//
// In: a format, what is shown. Out: a download with a plain name. Made here, of the tree as it is seen (hidden frames,
// callers, sandwich and all); the daemon's own formats are at /api/v1/flamegraph.

import { folded } from './folded.js';
import { speedscope } from './speedscope.js';
import { pprof } from './pprof.js';
import { svg } from './svg.js';
import { h } from '../dom.js';

/** Formats: key and name. */
export const FORMATS = [['svg', 'SVG picture'], ['folded', 'Folded stacks'], ['pprof', 'pprof'], ['speedscope', 'speedscope']];

const ENDS = { svg: 'svg', folded: 'folded', pprof: 'pb.gz', speedscope: 'speedscope.json' };

/** A name that any file system takes. */
export function fileName(title, format) {
  const stem = title.replace(/[^\w.-]+/g, '-').replace(/^[-.]+|-+$/g, '').slice(0, 80) || 'profile';
  return `${stem}.${ENDS[format]}`;
}

/** What a format is of a graph. */
export async function content(format, shown) {
  const { tree, layout, unit, title } = shown;
  if (format === 'svg') return new Blob([svg(tree, layout, shown)], { type: 'image/svg+xml' });
  if (format === 'folded') return new Blob([folded(tree, unit)], { type: 'text/plain' });
  if (format === 'speedscope') return new Blob([JSON.stringify(speedscope(tree, title, unit))], { type: 'application/json' });
  return new Blob([await pprof(tree, shown)], { type: 'application/octet-stream' });
}

/** Saves it. */
export async function save(format, shown) {
  const url = URL.createObjectURL(await content(format, shown));
  const link = h('a', { href: url, download: fileName(shown.title, format) });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
