// Methods by self time, and by total time: with all they call.
//
// In: a tree. Out: a row for each frame: `{frame, own, sum, ownSamples, sumSamples}` (of a comparison `[right, left]`
// in `own` and `sum`). A method that calls itself counts once for each stack. Pure.

/**
 * The standard error of a method's difference, as the daemon has it (`difference_error`): `pair` is its amounts, such as seconds,
 * `[right, left]`, `each` what a sample of each side stands for. A time of n samples of s seconds is off by s times the root of n;
 * where shares are compared, `whole` being the sides' totals, by that of its share.
 */
export const errorOfDifference = (pair, each, whole) => Math.sqrt(pair.reduce((sum, seconds, side) => sum + seconds * (each[side] || 0) * (whole?.[side] > 0 ? Math.max(0, 1 - seconds / whole[side]) : 1), 0));

/** Rows of a tree. */
export function methods(t) {
  const n = t.frames.length;
  const columns = t.own.length;
  const own = t.own.map(() => new Float64Array(n));
  const sum = t.own.map(() => new Float64Array(n));
  const count = new Uint32Array(t.parent.length + 1);
  for (let i = 1; i < t.parent.length; i += 1) count[t.parent[i] + 1] += 1;
  for (let i = 0; i < t.parent.length; i += 1) count[i + 1] += count[i];
  const next = Uint32Array.from(count);
  const callee = new Uint32Array(t.parent.length);
  for (let i = 1; i < t.parent.length; i += 1) { callee[next[t.parent[i]]] = i; next[t.parent[i]] += 1; }
  // Down and up again: `open` says how often a frame is on the way at this moment.
  const open = new Uint32Array(n);
  const way = [0];
  while (way.length > 0) {
    const at = way.pop();
    if (at < 0) { open[t.frame[~at]] -= 1; continue; }
    const frame = t.frame[at];
    for (let c = 0; c < columns; c += 1) {
      own[c][frame] += t.own[c][at];
      if (open[frame] === 0) sum[c][frame] += t.sum[c][at];
    }
    open[frame] += 1;
    way.push(~at);
    for (let i = count[at]; i < count[at + 1]; i += 1) way.push(callee[i]);
  }
  const out = [];
  for (let f = 0; f < n; f += 1) {
    if (t.frames[f].kind === 'label' || sum.every((column) => column[f] === 0)) continue;
    out.push({ frame: t.frames[f], own: own.map((column) => column[f]), sum: sum.map((column) => column[f]) });
  }
  return out;
}
