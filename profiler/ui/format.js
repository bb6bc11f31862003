// Numbers, times and names as people read them.
//
// In: plain values and text from observed programs. Out: text. Names may hold anything: `safe` makes control
// characters, bidirectional marks and invisible ones visible and cuts long ones, so that no name can change how
// its surroundings read. Everything is put on the page as text, never as HTML.

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|[\u{e0000}-\u{e007f}]/gu;

/** A name for showing: nothing hidden in it, at most `most` characters. */
export function safe(text, most = 200) {
  let out = String(text ?? '');
  if (out.length > most) out = `${out.slice(0, most - 1)}…`;
  return out.replace(HIDDEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** `Class.method` of a Java name, the last part of a path, else the name. */
export function short(name) {
  const end = name.indexOf('(') < 0 ? name.length : name.indexOf('(');
  const head = name.slice(0, end);
  if (/^[\w$.<>/+-]+$/.test(head) && head.includes('.')) {
    const parts = head.split('.');
    if (parts.length > 2) return parts.slice(-2).join('.') + name.slice(end);
  }
  return name;
}

/** `org.apache.spark` of `org.apache.spark.sql.X.y`: what a package is coloured by. */
export function packageOf(frame) {
  if (frame.kind.startsWith('java')) {
    const parts = frame.name.split('.');
    return parts.slice(0, Math.min(3, Math.max(0, parts.length - 2))).join('.') || '(no package)';
  }
  if (frame.kind === 'kernel') return 'kernel';
  if (frame.module) return frame.module.slice(frame.module.lastIndexOf('/') + 1);
  return frame.kind;
}

/** 12,345 */
export function count(n) {
  return Number.isFinite(n) ? Math.round(n).toLocaleString('en-US') : '–';
}

/** Seconds with a fixed number of places, for columns. */
export function seconds(s, places = 2) {
  if (!Number.isFinite(s)) return '–';
  return s.toLocaleString('en-US', { minimumFractionDigits: places, maximumFractionDigits: places });
}

/** A length of time in the unit that suits it: `1 h 12 m`, `4.21 s`, `850 ms`. */
export function duration(s) {
  if (!Number.isFinite(s)) return '–';
  const sign = s < 0 ? '−' : '';
  const a = Math.abs(s);
  if (a === 0) return '0 s';
  if (a < 1e-3) return `${sign}${(a * 1e6).toFixed(0)} µs`;
  if (a < 0.9995) return `${sign}${(a * 1e3).toFixed(a < 0.01 ? 1 : 0)} ms`;
  if (a < 59.995) return `${sign}${a.toFixed(2)} s`;
  const whole = Math.round(a);
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)} m ${String(whole % 60).padStart(2, '0')} s`;
  return `${sign}${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, '0')} m`;
}

/** 0.1234 is `12.3 %`. */
export function percent(share, places) {
  if (!Number.isFinite(share)) return '–';
  const p = share * 100;
  const digits = places ?? (p !== 0 && Math.abs(p) < 0.1 ? 3 : Math.abs(p) < 10 ? 2 : 1);
  return `${p.toFixed(digits)} %`;
}

/** How many times as much: `3.4 ×`. */
export function times(ratio) {
  return Number.isFinite(ratio) ? `${ratio.toFixed(ratio < 9.95 ? 1 : 0)} ×` : '–';
}

/** The sampling error of n samples: `± 5 %`; nothing of nothing. */
export function plusMinus(samples) {
  return samples > 0 ? `± ${errorOf(samples)}` : '';
}

function errorOf(samples) {
  const p = 100 / Math.sqrt(samples);
  return `${p < 10 ? p.toFixed(1) : Math.round(p)} %`;
}

/** A number with a sign. */
export function signed(text, value) {
  return value > 0 ? `+${text}` : text.replace('-', '−');
}

/** Bytes as `12.3 MiB`. */
export function bytes(n) {
  if (!Number.isFinite(n)) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  while (n >= 1024 && at < units.length - 1) { n /= 1024; at += 1; }
  return `${at ? n.toFixed(1) : n} ${units[at]}`;
}

const two = (n) => String(n).padStart(2, '0');

/** The time of day, local: `14:03:20`. */
export function clock(ms) {
  const d = new Date(ms);
  return Number.isNaN(d.getTime()) ? '–' : `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** The day and the time of day, local; the day only when it is not today. */
export function instant(ms, now = Date.now()) {
  const d = new Date(ms);
  if (Number.isNaN(d.getTime())) return '–';
  const same = new Date(now).toDateString() === d.toDateString();
  return same ? clock(ms) : `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(ms)}`;
}
