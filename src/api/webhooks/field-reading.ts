import type { Json } from '../../model/json.ts';
import type { Problem } from '../../model/problem.ts';

/** What becomes of a value that was sent for a field of a hook. */
export interface FieldReading {
  /** The value as it is kept; undefined where nothing of it is valid. */
  readonly value?: Json | undefined;
  /** What of it is not valid, and waits in `_unknowns_`; undefined where all of it is valid. */
  readonly waiting?: Json | undefined;
  readonly problems: readonly Problem[];
}

/**
 * A whole number between two others, both included, or the text of one, as forms and query strings
 * have it; undefined for other values.
 */
export function wholeNumber(value: Json, min: number, max: number): number | undefined {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  const isValid = Number.isInteger(number) && Number(number) >= min && Number(number) <= max;
  return isValid ? Number(number) : undefined;
}
