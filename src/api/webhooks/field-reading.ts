import { isJsonObject, type Json, type JsonObject } from '../../model/json.ts';
import type { Problem } from '../../model/failure.ts';

/** What becomes of a value that was sent for a field of a hook. */
export interface FieldReading {
  /** The value as it is kept; undefined where nothing of it is valid. */
  readonly value?: Json | undefined;
  /** What of it is not valid, and waits in `_unknowns_`; undefined where all of it is valid. */
  readonly waiting?: Json | undefined;
  readonly problems: readonly Problem[];
}

/** A whole number between two others, both included; undefined for other values. */
export function wholeNumber(value: Json, min: number, max: number): number | undefined {
  if (typeof value !== 'number' || !Number.isInteger(value)) return undefined;
  return value >= min && value <= max ? value : undefined;
}

/**
 * The fields of a hook out of a form or a query string, where all is text: numerals and `true` or
 * `false` are read as such in the fields that have numbers and switches.
 */
export function fieldsFromText(sent: JsonObject): JsonObject {
  const { frequency } = sent;
  return {
    ...sent,
    ...readTexts(sent, ['active', 'order', 'retry_limit']),
    ...(isJsonObject(frequency) && {
      frequency: { ...frequency, ...readTexts(frequency, ['max_events']) },
    }),
  };
}

function readTexts(sent: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => {
      const text = sent[name];
      const value = typeof text === 'string' ? readText(text) : undefined;
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}

function readText(text: string): Json | undefined {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  return text === 'true' || text === 'false' ? text === 'true' : undefined;
}
