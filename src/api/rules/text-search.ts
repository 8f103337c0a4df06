import { isJsonObject, type Json } from '../../model/json.ts';

/**
 * Makes what tells whether a text is found in any field of a record, in any case of letters: as a
 * person writes it, or as JSON in what is no text itself.
 */
export function textSearch(text: string): (record: object) => boolean {
  const sought = text.toLowerCase();
  return (record) =>
    (Object.values(record) as Json[]).map(writtenText).join('\n').toLowerCase().includes(sought);
}

/** A value as JSON, and what that writes otherwise than a person does: quotes and line ends. */
function writtenText(value: Json): string {
  if (typeof value === 'string') return value;
  const json = JSON.stringify(value);
  return json.includes('\\') ? [json, ...textsIn(value)].join('\n') : json;
}

/** All texts in a value, the names of members too. */
function textsIn(value: Json): readonly string[] {
  if (typeof value === 'string') return [value];
  if (!isJsonObject(value)) return Array.isArray(value) ? value.flatMap(textsIn) : [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member)]);
}
