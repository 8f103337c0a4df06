/* Shows a record with the names of its fields, read-only. */

import { tag } from './dom.js';
import { choicesOf, labelOf, propertiesOf, resolved, sameValue } from './schema.js';

/** The fields of a record as a list of terms. */
export function describeRecord(members, record, { say, lang, root }) {
  const values = new Map(Object.entries(record ?? {}));
  // Titles of the rows that the record refers to.
  const titles = Object.assign(Object.create(null), record?._titles_);
  const rows = members.map(({ name, schema }) =>
    tag(
      'div',
      {},
      tag('dt', {}, labelOf(name, schema)),
      tag('dd', {}, titles[name] ?? shown(values.get(name), schema, { say, lang, root })),
    ),
  );
  return tag('dl', { className: 'waymark-record' }, ...rows);
}

/** A value as a text or elements for people. */
export function shown(value, schema, more) {
  const { say, lang, root } = more;
  if (value === undefined || value === null || value === '') return say('nothing');
  const choice = choicesOf(schema)?.find((one) => sameValue(one.value, value));
  if (choice !== undefined) return choice.label;
  if (typeof value === 'boolean') return say(value ? 'yes' : 'no');
  if (typeof value === 'number') return value.toLocaleString(lang);
  if ('isRawJSON' in JSON && JSON.isRawJSON(value))
    return new Intl.NumberFormat(lang).format(value.rawJSON);
  if (Array.isArray(value)) {
    const items = resolved(schema.items, root);
    return tag('ul', {}, ...value.map((one) => tag('li', {}, shown(one, items, more))));
  }
  if (typeof value === 'object') {
    return describeRecord(propertiesOf(schema, root), value, more);
  }
  const moment = ['date', 'date-time'].includes(schema.format) ? new Date(value) : undefined;
  if (moment === undefined || Number.isNaN(moment.getTime())) return String(value);
  // A date has no time zone: UTC keeps it on its day.
  const style =
    schema.format === 'date'
      ? { dateStyle: 'long', timeZone: 'UTC' }
      : { dateStyle: 'long', timeStyle: 'short' };
  return moment.toLocaleString(lang, style);
}
