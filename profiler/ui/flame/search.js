// Which frames a search means, and how much of the time they are in.
//
// In: a tree and a regular expression as typed. Out: `{frames, share, nodes}`: the frames that match, the share of
// the whole that lies in or below them (nested matches count once), how many nodes match; or `{error}` with the
// browser's words. A search without capital letters finds either case. Limit: 500 characters. Pure.

/** Longest search. */
export const MOST = 500;

/** A regular expression from what was typed; null of nothing. */
export function expression(text) {
  if (!text) return null;
  if (text.length > MOST) throw new SyntaxError(`A search has at most ${MOST} characters.`);
  return new RegExp(text, /[A-Z]/.test(text.replace(/\\./g, '')) ? 'u' : 'iu');
}

/** Frames whose name matches. Names are cut at 1000 characters: an expression may take long on each. */
export function matching(frames, regex) {
  return Uint8Array.from(frames, (f) => (f.kind !== 'label' || f.name.includes('=')) && regex.test(f.name.length > 1000 ? f.name.slice(0, 1000) : f.name) ? 1 : 0);
}

/** What a search finds in a tree. */
export function search(t, text, width = t.sum[0]) {
  let regex;
  try {
    regex = expression(text);
  } catch (error) {
    return { error: error.message };
  }
  if (!regex) return null;
  const frames = matching(t.frames, regex);
  const inside = new Uint8Array(t.parent.length);
  let found = 0;
  let nodes = 0;
  for (let i = 0; i < t.parent.length; i += 1) {
    const is = frames[t.frame[i]];
    // Of a sandwich's callers only those count that lie in the matched part: they are other views of the same time.
    const counted = t.callers === undefined || i < t.callers;
    if (is) nodes += 1;
    inside[i] = is || (i > 0 && inside[t.parent[i]]) ? 1 : 0;
    if (is && counted && !(i > 0 && inside[t.parent[i]])) found += width[i];
  }
  return { frames, share: width[0] > 0 ? found / width[0] : 0, nodes };
}
