import type { Json } from './json.ts';

const dateTime = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|z|[+-]\d\d:\d\d)?$/;

/**
 * An ISO 8601 date-time, kept as UTC; without an offset it is UTC already
 * (docs/design/page-rules.md#fields).
 */
export function parseDateTime(value: Json): string | undefined {
  const match = typeof value === 'string' ? dateTime.exec(value) : null;
  if (match === null) return undefined;
  const [, date = '', time = '', offset = 'Z'] = match;
  const dayMs = Date.parse(`${date}T00:00:00Z`);
  // Date.parse takes 31 February for 3 March: a day that does not come back as it was written does
  // not exist.
  if (Number.isNaN(dayMs) || new Date(dayMs).toISOString().slice(0, 10) !== date) return undefined;
  const timeMs = Date.parse(`${date}T${time}${offset.toUpperCase()}`);
  // An offset can lead out of the years that have four digits.
  const iso = Number.isNaN(timeMs) ? '' : new Date(timeMs).toISOString();
  return /^\d/.test(iso) ? iso : undefined;
}
