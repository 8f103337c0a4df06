/*
 * Makes the fields of a form from a JSON Schema: an object becomes a group, an array a list with
 * buttons to add and remove items, everything else a control. A field has its `element`, the
 * `target` that gets the focus, `get` and `set` for its value (undefined for none), `problem` for
 * its error, `mark` to show an error, and, if it contains fields, `parts` by name.
 */

import { checkCount, createCheckboxes } from './choices.js';
import { createControl } from './controls.js';
import { surroundings, tag } from './dom.js';
import { choicesOf, labelOf, propertiesOf, resolved, typeOf } from './schema.js';

const depthMax = 6;

/** Creates a field; `spec` has its name, resolved schema, isRequired, root, say and depth. */
export function createField(spec) {
  const named = { depth: 0, label: labelOf(spec.name, spec.schema), ...spec };
  // Deeper levels are edited as JSON.
  if (named.depth >= depthMax) return createControl({ ...named, schema: { title: named.label } });
  const type = choicesOf(named.schema) === undefined ? typeOf(named.schema) : 'choice';
  if (type === 'object' && named.schema.properties !== undefined) return createGroup(named);
  if (type === 'array' && named.schema.items !== undefined) return createList(named);
  return createControl(named);
}

/** A field and all fields in it, except those of an optional group that is empty. */
export function* fieldsIn(field) {
  yield field;
  if (field.get() === undefined && !isBegun(field)) return;
  for (const part of field.parts?.() ?? []) yield* fieldsIn(part.field);
}

/** Whether an input holds an incomplete value, such as half a date. */
function isBegun({ element }) {
  return [...element.querySelectorAll('input')].some(({ validity }) => validity.badInput);
}

/** The field at a path such as `address.city` or `lines.0.count`; the nearest one above if none. */
export function fieldAt(field, path) {
  const [name, ...rest] = path;
  const found = field.parts?.().find((part) => part.name === name)?.field;
  if (found === undefined) return field;
  return fieldAt(found, rest);
}

function createGroup(spec) {
  const { schema, isRequired, root, say, depth } = spec;
  const parts = surroundings(spec);
  const members = propertiesOf(schema, root)
    .filter((member) => member.schema.readOnly !== true)
    .map(({ name, ...member }) => ({
      name,
      field: createField({ ...member, name, root, say, depth: depth + 1 }),
    }));
  // Members that the schema does not define are sent back unchanged.
  let others = {};
  return {
    target: members[0]?.field.target,
    label: parts.label,
    element: tag(
      'fieldset',
      { className: 'waymark-group', 'aria-describedby': parts.describedBy },
      tag('legend', {}, ...parts.labelParts),
      ...parts.around,
      ...members.map(({ field }) => field.element),
    ),
    get() {
      const value = valuesOf(members, others);
      const isEmpty = Object.values(value).every((one) => one === false);
      return isRequired || !isEmpty ? value : undefined;
    },
    set(value) {
      const names = new Set(members.map(({ name }) => name));
      const given = typeof value === 'object' && value !== null ? Object.entries(value) : [];
      others = Object.fromEntries(given.filter(([name]) => !names.has(name)));
      const values = new Map(given);
      for (const { name, field } of members) field.set(values.get(name) ?? undefined);
    },
    problem: () => '',
    mark: (message) => parts.mark(message, []),
    parts: () => members,
  };
}

/** The object with the values of members; works for any name, also `__proto__`. */
export function valuesOf(members, others = {}) {
  const values = members.map(({ name, field }) => [name, field.get()]);
  return Object.fromEntries([
    ...Object.entries(others),
    ...values.filter(([, value]) => value !== undefined),
  ]);
}

function createList(spec) {
  const { schema, isRequired, root, say, depth, label } = spec;
  const items = resolved(schema.items, root);
  const choices = choicesOf(items);
  if (choices !== undefined) return createCheckboxes(spec, choices);

  const parts = surroundings(spec);
  const list = tag('ol', { className: 'waymark-list' });
  const what = labelOf(spec.name, items.title === undefined ? { title: label } : items);
  const add = tag('button', { type: 'button', id: parts.id }, say('add', { what }));
  let rows = [];
  add.addEventListener('click', () => {
    addRow(undefined).field.target?.focus();
  });

  function addRow(value) {
    const field = createField({
      name: what,
      schema: items,
      isRequired: true,
      root,
      say,
      depth: depth + 1,
    });
    field.set(value ?? items.default);
    const remove = tag('button', { type: 'button' }, say('remove', { what }));
    const row = { field, element: tag('li', {}, field.element, remove) };
    remove.addEventListener('click', () => {
      const at = rows.indexOf(row);
      rows = rows.filter((one) => one !== row);
      row.element.remove();
      (rows[at] ?? rows[at - 1])?.field.target?.focus();
      if (rows.length === 0) add.focus();
    });
    rows.push(row);
    list.append(row.element);
    return row;
  }

  const get = () => rows.map(({ field }) => field.get()).filter((value) => value !== undefined);
  return {
    target: add,
    label: parts.label,
    element: tag(
      'fieldset',
      { className: 'waymark-group', 'aria-describedby': parts.describedBy },
      tag('legend', {}, ...parts.labelParts),
      ...parts.around,
      list,
      add,
    ),
    get: () => (rows.length === 0 && !isRequired ? undefined : get()),
    set(values) {
      rows = [];
      list.replaceChildren();
      const least = Array.from({ length: schema.minItems ?? 0 });
      for (const value of Array.isArray(values) ? values : least) addRow(value);
    },
    problem: () => checkCount(get(), schema, say),
    mark: (message) => parts.mark(message, []),
    parts: () => rows.map(({ field }, at) => ({ name: String(at), field })),
  };
}
