import type { Json } from '../api/api.ts';

/** The header fields of a rule, one on each line. */
export function headerLines(headers: Json | undefined): string {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    return textOf(headers);
  }
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((one) => `${name}: ${textOf(one)}`.trimEnd()),
  );
  return lines.join('\n');
}

/** The header fields of such lines; the text itself if a line is none, so that the server says so. */
export function headersOf(text: string): Json {
  const fields = new Map<string, readonly string[]>();
  for (const line of text.split('\n').filter((one) => one.trim() !== '')) {
    const colon = line.indexOf(':');
    if (colon < 1) return text;
    const name = line.slice(0, colon).trim();
    fields.set(name, [...(fields.get(name) ?? []), line.slice(colon + 1).trim()]);
  }
  return Object.fromEntries(
    [...fields].map(([name, values]) => [
      name,
      values.length === 1 ? (values[0] ?? '') : [...values],
    ]),
  );
}

/** A value as text: another one than a text as JSON. */
export function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
