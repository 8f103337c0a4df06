import { numberOf } from '../../values/json/exact-number.ts';
import { isJsonObject, type Json } from '../../values/json/json.ts';

/**
 * A value of a form or query, where all values are texts, as a JSON Schema has it: a text of a list
 * is its only item, and texts of numbers and switches are such. What the schema does not explain
 * stays a text.
 */
export function formValue(value: Json, schema: Json | undefined): Json {
  if (!isJsonObject(schema)) return value;
  const { type, properties, items } = schema;
  const types = [type].flat();
  if (typeof value === 'string') {
    if (types.includes('string')) return value;
    if (types.includes('array')) return [formValue(value, items)];
    if (types.includes('boolean')) {
      const isOn = switches.get(value);
      if (isOn !== undefined) return isOn;
    }
    return types.includes('integer') || types.includes('number') ? numeral(value) : value;
  }
  if (Array.isArray(value)) return value.map((one: Json) => formValue(one, items));
  if (!isJsonObject(value) || !isJsonObject(properties)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      formValue(member, Object.hasOwn(properties, name) ? properties[name] : undefined),
    ]),
  );
}

/** The words of a switch; browsers send `on` for a box that is ticked. */
const switches: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['on', true],
  ['false', false],
  ['off', false],
]);

/** The number that a text is; the text itself if it is none. */
export function numeral(text: string): Json {
  const isNumber = /^-?\d{1,300}(?:\.\d{1,300})?(?:e[+-]?\d{1,3})?$/i.test(text.trim());
  return isNumber ? (numberOf(text.trim()) ?? text) : text;
}
