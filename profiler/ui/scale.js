// The ticks of an axis: two or three round numbers with their unit.
//
// In: the largest value, and in the plural what it counts. Out: `{value, text}`, the lowest first. Bytes are round in KiB, MiB and
// so on. Pure.

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
/** Round steps: for any largest value one of them gives two ticks or three. */
const STEPS = [5, 4, 2, 1];

/** The largest round step of which two fit below `most`. */
function step(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  const steps = [power, power / 10].flatMap((size) => STEPS.map((s) => s * size));
  return steps.find((s) => 2 * s <= most * (1 + 1e-9));
}

/** Ticks up to `most` of `of`; `per` stands behind the unit. None of nothing. */
export function ticks(most, of, per = '') {
  if (!(most > 0) || !Number.isFinite(most)) return [];
  const power = of === 'bytes' ? Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(most) / 10))) : 0;
  const one = 1024 ** power;
  const unit = of === 'bytes' ? UNITS[power] : of;
  const by = step(most / one);
  const count = Math.floor(most / one / by + 1e-9);
  return Array.from({ length: count }, (_, at) => {
    // Not 0.30000000000000004.
    const value = Number(((at + 1) * by).toPrecision(6));
    return { value: value * one, text: `${value.toLocaleString('en-US', { maximumSignificantDigits: 6 })} ${value === 1 ? unit.replace(/s$/, '') : unit}${per}` };
  });
}
