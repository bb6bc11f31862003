// What numbers count: samples, or what they weigh in the unit of their kind.
//
// In: the state, or a unit's name as the API has it. Out: texts. Pure.

import { count, duration, seconds } from './format.js';
import { KINDS } from './kinds.js';

/** The kind that a state is about. */
export const kindOf = (state) => KINDS.find((kind) => kind.type === state.type) ?? KINDS[0];

/** The unit of a state's numbers, as the API names it. Comparisons have no counts of samples. */
export const unitOf = (state) => (state.unit === 'samples' && !['compare', 'slow'].includes(state.view) ? 'samples' : kindOf(state).unit);

/** A number with its unit: `12 samples`, `1.20 s`, `4,096 faults`. */
export const shown = (v, unit) => (unit === 'ns' ? duration(v / 1e9) : `${count(v)} ${unit}`);

/** The same for a column that says the unit. */
export const cell = (v, unit) => (unit === 'ns' ? seconds(v / 1e9) : v.toLocaleString('en-US'));

/** An amount of an answer's row, with its unit. */
export const amount = (v, kind) => (kind.unit === 'ns' ? duration(v) : `${count(v)} ${kind.unit}`);

/** An amount of a comparison, which may be scaled: times are in seconds, what is no time in the unit of this name. */
export const scaled = (v, unit) => (unit === 'ns' ? duration(v) : `${Math.abs(v) < 10 && !Number.isInteger(v) ? v.toFixed(1) : count(v)} ${unit}`);
