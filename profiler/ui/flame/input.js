// Mouse, touch and keys of a graph.
//
// In: a graph. Out: its methods called. A click zooms, a drag moves what is zoomed, the wheel scrolls and with Ctrl
// or Shift zooms where the pointer is, a right click opens the menu. Keys: arrows, Home, End, Enter, Escape,
// Backspace, 0, +, -, n, N, m.

/** A press that moved less than this many pixels is a click. */
const STILL = 4;

/** Connects a graph with its canvas. */
export function listen(graph) {
  const { box, canvas } = graph;
  let press = null;
  const place = (event) => {
    const rect = canvas.getBoundingClientRect();
    return [event.clientX - rect.left, event.clientY - rect.top];
  };

  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    const { x0, x1 } = graph.view;
    press = { x: event.clientX, y: event.clientY, x0, x1, scroll: box.scrollTop, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    const [x, y] = place(event);
    if (!press) { graph.hint(graph.at(x, y), event.clientX, event.clientY); return; }
    const [dx, dy] = [event.clientX - press.x, event.clientY - press.y];
    if (!press.moved && Math.hypot(dx, dy) < STILL) return;
    press.moved = true;
    graph.hint(-1);
    box.scrollTop = press.scroll - dy;
    graph.pan(press.x0 - (dx / graph.view.width) * (press.x1 - press.x0), press.x1 - press.x0);
  });
  const release = (event) => {
    if (!press) return;
    const { moved } = press;
    press = null;
    if (moved || event.type === 'pointercancel') return;
    const node = graph.at(...place(event));
    if (node >= 0) graph.choose(node);
  };
  canvas.addEventListener('pointerup', release);
  canvas.addEventListener('pointercancel', release);
  canvas.addEventListener('pointerleave', () => graph.hint(-1));
  canvas.addEventListener('contextmenu', (event) => {
    const node = graph.at(...place(event));
    if (node < 0) return;
    event.preventDefault();
    graph.hint(-1);
    graph.hooks.menu?.(node, event.clientX, event.clientY);
  });
  box.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const [x] = place(event);
    graph.scale(Math.exp((event.deltaY || event.deltaX) * 0.002), x / graph.view.width);
  }, { passive: false });
  box.addEventListener('scroll', () => { graph.hint(-1); graph.paint(); });

  box.addEventListener('focus', () => { graph.view.focused = box.matches(':focus-visible'); if (graph.layout) { graph.tellCursor(); graph.paint(); } });
  box.addEventListener('blur', () => { graph.view.focused = false; graph.paint(); });
  box.addEventListener('keydown', (event) => {
    if (!graph.layout || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!key(graph, event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

const MOVES = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right', Home: 'first', End: 'last' };

function key(graph, event) {
  graph.view.focused = true;
  const { cursor } = graph.view;
  if (MOVES[event.key]) graph.go(MOVES[event.key]);
  else if (event.key === 'Enter' || event.key === ' ') graph.choose(cursor);
  else if (event.key === 'Escape' || event.key === '0') graph.zoomTo(0);
  else if (event.key === 'Backspace') graph.out();
  else if (event.key === '+') graph.scale(0.7, 0.5);
  else if (event.key === '-') graph.scale(1 / 0.7, 0.5);
  else if (event.key === 'n') graph.nextFound(1);
  else if (event.key === 'N') graph.nextFound(-1);
  else if (event.key === 'm' || event.key === 'ContextMenu') {
    const rect = graph.canvas.getBoundingClientRect();
    graph.hooks.menu?.(cursor, rect.left + 40, rect.top + 60);
  } else return false;
  return true;
}
