// A row of small bars with a mark each: how something went, run by run.
//
// In: `{value, mark, title, on}`, the oldest first, and a sentence that says the same to who hears the page. Out: an SVG of
// its own scale for bars and for marks. At most the last 120 are drawn.

const SVG = 'http://www.w3.org/2000/svg';
const MOST = 120;
const [STEP, WIDE, HIGH] = [18, 13, 44];

function shape(name, attributes, title) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (title) element.append(Object.assign(document.createElementNS(SVG, 'title'), { textContent: title }));
  return element;
}

/** Heights in pixels of values, the largest being all there is; nothing of what is no number. */
export function heights(values, high = HIGH) {
  const most = Math.max(...values.filter(Number.isFinite), 0);
  return values.map((value) => (most > 0 && Number.isFinite(value) ? Math.max(1, Math.round((value / most) * high)) : 0));
}

/** The picture. */
export function bars(all, says) {
  const shown = all.slice(-MOST);
  const [tall, marks] = [heights(shown.map((bar) => bar.value)), heights(shown.map((bar) => bar.mark))];
  const width = shown.length * STEP;
  const svg = shape('svg', { class: 'runs-line', role: 'img', 'aria-label': says, width, height: HIGH + 4, viewBox: `0 0 ${width} ${HIGH + 4}` });
  shown.forEach((bar, at) => {
    svg.append(shape('rect', { class: bar.on ? 'bar on' : 'bar', x: at * STEP, y: HIGH + 2 - tall[at], width: WIDE, height: tall[at] }, bar.title));
    if (marks[at] > 0) svg.append(shape('rect', { class: 'mark', x: at * STEP - 1, y: HIGH + 1 - marks[at], width: WIDE + 2, height: 2 }, bar.title));
  });
  return svg;
}
