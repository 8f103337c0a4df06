/*
 * Fields of one value: makes the browser's control for a schema. The browser validates the value;
 * this module checks what browsers cannot.
 */

import { numberOf, parseJson } from '../exact-json.js';
import { createRadios, createSelect } from './choices.js';
import { labelled, newId, surroundings, tag } from './dom.js';
import { choicesOf, textOf, typeOf } from './schema.js';

const longCharacters = 160;
const radiosMax = 5;

const inputTypes = new Map([
  ['email', 'email'],
  ['idn-email', 'email'],
  ['uri', 'url'],
  ['iri', 'url'],
  ['date', 'date'],
  ['time', 'time'],
  ['date-time', 'datetime-local'],
  ['password', 'password'],
  ['color', 'color'],
  ['tel', 'tel'],
]);

/** The latest dates of RFC 3339, whose years have four digits; browsers allow later ones. */
const latest = new Map([
  ['date', '9999-12-31'],
  ['datetime-local', '9999-12-31T23:59'],
]);

/** The `autocomplete` of fields by their names (WCAG 2.2, 1.3.5). */
const autocompletes = new Map([
  ['name', 'name'],
  ['email', 'email'],
  ['phone', 'tel'],
  ['tel', 'tel'],
  ['organization', 'organization'],
  ['street', 'street-address'],
  ['postal_code', 'postal-code'],
  ['city', 'address-level2'],
  ['country', 'country-name'],
]);

/** The field of a schema that is neither object nor array. */
export function createControl(spec) {
  const { schema } = spec;
  const choices = choicesOf(schema);
  if (choices !== undefined) {
    return spec.isRequired && choices.length <= radiosMax
      ? createRadios(spec, choices)
      : createSelect(spec, choices);
  }
  switch (typeOf(schema)) {
    case 'boolean':
      return checkbox(spec);
    case 'integer':
    case 'number':
      return number(spec);
    case 'string':
      return isLong(schema) ? area(spec, plainText) : input(spec);
    default:
      return area(spec, json(spec.say));
  }
}

function input(spec) {
  const { name, schema, isRequired, say } = spec;
  const type = inputTypes.get(schema.format) ?? 'text';
  const control = tag('input', {
    type,
    required: isRequired,
    autocomplete: autocompletes.get(name.toLowerCase()),
    max: latest.get(type),
    ...(Number.isInteger(schema.minLength) && { minLength: schema.minLength }),
  });
  if (type === 'time' || type === 'datetime-local') control.step = 'any';
  const suggestions = listOf(schema);
  if (suggestions !== undefined) control.setAttribute('list', suggestions.id);
  const kind = type === 'time' ? clockTime() : type === 'datetime-local' ? moment : plainText;
  const field = labelled(spec, control, {
    get: () => (control.value === '' ? undefined : kind.read(control.value)),
    set: (value) => {
      control.value = value === undefined ? '' : kind.write(value);
    },
    check: (value) => checkText(value, schema, say),
  });
  field.element.append(suggestions ?? '');
  return field;
}

/** Suggestions of a field that refers to one of many rows (records.js). */
function listOf({ 'x-choices': choices }) {
  if (choices === undefined) return undefined;
  const options = choices.map(({ const: value, title }) =>
    tag('option', { value: String(value), label: title }),
  );
  return tag('datalist', { id: newId() }, ...options);
}

const plainText = { read: (value) => value, write: String, check: () => undefined };

/** Converts a date-time between the browser's local time and the record's UTC (RFC 3339). */
const moment = { read: momentOf, write: localOf };

function momentOf(local) {
  const moment = new Date(local);
  return Number.isNaN(moment.getTime()) ? undefined : moment.toISOString();
}

function localOf(value) {
  const moment = new Date(value);
  if (Number.isNaN(moment.getTime())) return '';
  const local = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000);
  return local.toISOString().replace(/(:00)?\.000Z$|Z$/, '');
}

/**
 * Converts a time of day. RFC 3339 requires an offset, which browsers do not show: the offset of
 * the record is kept.
 */
function clockTime() {
  let offset = '';
  return {
    read: (value) => (offset === '' ? value : value.replace(/^\d+:\d+$/, '$&:00') + offset),
    write(value) {
      const parts = /^(\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)\d*(Z|[+-]\d\d:\d\d)$/i.exec(value);
      offset = parts?.[2] ?? '';
      return parts?.[1] ?? String(value);
    },
  };
}

function number(spec) {
  const { schema, isRequired, say } = spec;
  const isWhole = typeOf(schema) === 'integer';
  const step = typeof schema.multipleOf === 'number' ? schema.multipleOf : isWhole ? 1 : 'any';
  const control = tag('input', {
    type: 'number',
    required: isRequired,
    inputMode: isWhole ? 'numeric' : 'decimal',
    step,
    min: leastOf(schema.minimum, step),
    max: schema.maximum,
  });
  return labelled(spec, control, {
    get: () => (control.value === '' ? undefined : numberOf(control.value)),
    set: (value) => {
      control.value = value === undefined ? '' : textOf(value);
    },
    check: (value) => {
      if (value === undefined) return '';
      const { exclusiveMinimum: low, exclusiveMaximum: high } = schema;
      if (typeof low === 'number' && control.valueAsNumber <= low)
        return say('low', { limit: low });
      if (typeof high === 'number' && control.valueAsNumber >= high)
        return say('high', { limit: high });
      return '';
    },
  });
}

/** The least number allowed: a browser counts steps from it, JSON Schema from 0. */
function leastOf(minimum, step) {
  if (typeof minimum !== 'number' || step === 'any') return minimum;
  // Rounded, because 3 × 0.1 is 0.30000000000000004 in binary.
  const steps = Math.ceil(Number((minimum / step).toPrecision(14)));
  return Number((steps * step).toPrecision(14));
}

/** A text area for long text or JSON; `kind` converts the value. */
function area(spec, kind) {
  const { schema, isRequired, say } = spec;
  const control = tag('textarea', {
    required: isRequired,
    rows: 5,
    ...(Number.isInteger(schema.minLength) && { minLength: schema.minLength }),
  });
  return labelled(spec, control, {
    get: () => (control.value === '' ? undefined : kind.read(control.value)),
    set: (value) => {
      control.value = value === undefined ? '' : kind.write(value);
    },
    check: (value) => kind.check(control.value) ?? checkText(value, schema, say),
  });
}

function json(say) {
  const read = (value) => {
    try {
      return parseJson(value);
    } catch {
      return undefined;
    }
  };
  return {
    read,
    write: (value) => JSON.stringify(value, null, 2),
    check: (value) => (value === '' || read(value) !== undefined ? undefined : say('json')),
  };
}

function checkbox(spec) {
  const { schema, say } = spec;
  const mustBeTicked = schema.const === true;
  const parts = surroundings({ ...spec, isRequired: true });
  const control = tag('input', {
    type: 'checkbox',
    id: parts.id,
    required: mustBeTicked,
    'aria-describedby': parts.describedBy,
  });
  return {
    target: control,
    label: parts.label,
    element: tag(
      'div',
      { className: 'waymark-field waymark-tick' },
      tag('label', { htmlFor: parts.id }, control, tag('span', {}, parts.label)),
      ...parts.around,
    ),
    get: () => control.checked,
    set: (value) => {
      control.checked = value === true;
    },
    problem: () => (mustBeTicked && !control.checked ? say('accept') : ''),
    mark: (message) => parts.mark(message, [control]),
  };
}

/**
 * Checks what HTML defines differently: JSON Schema's `pattern` may match any part of the text, and
 * it counts code points, where HTML counts an emoji twice and cuts pasted text.
 */
function checkText(value, { pattern, minLength, maxLength }, say) {
  if (typeof value !== 'string') return '';
  const { length } = Array.from(value);
  if (length < minLength) return say('short', { count: minLength });
  if (length > maxLength) return say('long', { count: maxLength });
  if (typeof pattern !== 'string') return '';
  try {
    return new RegExp(pattern, 'u').test(value) ? '' : say('pattern');
  } catch {
    return '';
  }
}

function isLong({ maxLength, format, contentMediaType }) {
  if (inputTypes.has(format)) return false;
  const isText = typeof contentMediaType === 'string' && contentMediaType.startsWith('text/');
  return maxLength >= longCharacters || isText;
}
