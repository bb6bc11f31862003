// Folded stacks: `root;...;leaf count`, a line for each stack that time was spent in.
//
// In: a tree as it is shown. Out: text. Of a comparison two counts, left and right, as difffolded writes them.
// `;` and line ends in names become other characters, so that each line stays one stack. Pure.

/** A name that breaks no line. */
export const clean = (name) => name.replace(/[;\r\n\u0085\u2028\u2029]/g, (c) => (c === ';' ? ':' : ' '));

/** The text. Comparisons of times are in microseconds, others in the unit of their kind. */
export function folded(t, unit = 'ns') {
  const one = unit === 'ns' ? 1e6 : 1;
  const paths = new Array(t.parent.length);
  paths[0] = '';
  const out = [];
  for (let i = 0; i < t.parent.length; i += 1) {
    const name = clean(t.frames[t.frame[i]].name);
    if (i > 0) paths[i] = paths[t.parent[i]] ? `${paths[t.parent[i]]};${name}` : name;
    const counts = t.kind === 'diff' ? [t.own[1][i], t.own[0][i]].map((v) => Math.round(v * one)) : [t.own[0][i]];
    if (counts.some((v) => v > 0)) out.push(`${paths[i] || name} ${counts.join(' ')}`);
  }
  return `${out.join('\n')}\n`;
}
