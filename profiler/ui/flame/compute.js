// From what the daemon answered to what is drawn: shape and layout.
//
// In: a tree and options. Out: `{tree, layout, missing}`; `missing` where a sandwich's method is not in the tree,
// which is then shown whole. Runs in a worker when the tree is large (worker.js), else where it is called. Pure.

import { fold } from './fold.js';
import { callees, callers, invert, merge } from './shape.js';
import { layout, sandwich } from './layout.js';

/** Shape and layout. */
export function compute(source, options) {
  const merged = merge(source, options);
  if (options.focus) {
    const below = callees(merged, options.focus);
    if (below) return sandwich(callers(merged, options.focus), below, options);
    return { tree: merged, layout: layout(merged, options), missing: true };
  }
  const shaped = options.invert ? invert(merged) : options.fold ? fold(merged) : merged;
  return { tree: shaped, layout: layout(shaped, options) };
}
