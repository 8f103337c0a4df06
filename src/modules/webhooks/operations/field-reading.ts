import type { Json } from '../../../core/values/json/json.ts';
import type { Problem } from '../../../core/values/failure.ts';

/** The result of reading a value for a field of a hook. */
export interface FieldReading {
  /** The valid value, or the valid members of it; undefined if there is none. */
  readonly value?: Json | undefined;
  /** The rest, which waits in `_unknowns_`; undefined if all of it is valid. */
  readonly waiting?: Json | undefined;
  readonly problems: readonly Problem[];
}

/** A whole number between two others, both included; undefined for other values. */
export function wholeNumber(value: Json, min: number, max: number): number | undefined {
  if (typeof value !== 'number' || !Number.isInteger(value)) return undefined;
  return value >= min && value <= max ? value : undefined;
}
