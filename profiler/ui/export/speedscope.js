// speedscope's file format, a "sampled" profile: one stack and one weight for each node with time of its own.
//
// In: a tree as it is shown, a name, the unit. Out: an object for JSON. Of a comparison there are two profiles, left
// and right. Pure. The format: speedscope's file-format-spec.ts, 1.x.

/** The object. */
export function speedscope(t, name, unit = 'ns') {
  const frames = t.frames.map((f) => ({ name: f.name, ...(f.module ? { file: f.module } : {}), ...(f.line ? { line: f.line } : {}) }));
  const profile = (column, title) => {
    const samples = [];
    const weights = [];
    for (let i = 0; i < t.parent.length; i += 1) {
      if (!(t.own[column][i] > 0)) continue;
      const stack = [];
      for (let at = i; at > 0; at = t.parent[at]) stack.push(t.frame[at]);
      samples.push(stack.reverse());
      weights.push(t.own[column][i]);
    }
    const endValue = weights.reduce((a, b) => a + b, 0);
    const kind = unit === 'bytes' ? 'bytes' : unit !== 'ns' ? 'none' : t.kind === 'diff' ? 'seconds' : 'nanoseconds';
    return { type: 'sampled', name: title, unit: kind, startValue: 0, endValue, samples, weights };
  };
  const profiles = t.kind === 'diff' ? [profile(0, `right: ${name}`), profile(1, `left: ${name}`)] : [profile(0, name)];
  return { $schema: 'https://www.speedscope.app/file-format-schema.json', exporter: 'emberscope', name, activeProfileIndex: 0, shared: { frames }, profiles };
}
