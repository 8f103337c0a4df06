/* Reads what a form needs from a JSON Schema (draft 2020-12); validates nothing. */

const referencesMax = 8;

/** A schema with its local references resolved and its allOf merged into it. */
export function resolved(schema, root, hops = 0) {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return {};
  const { $ref, allOf, ...own } = schema;
  const parts = [
    ...($ref === undefined ? [] : [follow($ref, root)]),
    ...(Array.isArray(allOf) ? allOf : []),
  ];
  if (parts.length === 0 || hops >= referencesMax) return own;
  return [...parts.map((part) => resolved(part, root, hops + 1)), own].reduce(merged);
}

function merged(one, other) {
  return {
    ...one,
    ...other,
    properties: { ...one.properties, ...other.properties },
    required: [...(one.required ?? []), ...(other.required ?? [])],
  };
}

/** Resolves a JSON Pointer within the same document (RFC 6901). */
function follow(reference, root) {
  if (typeof reference !== 'string' || !reference.startsWith('#')) return {};
  let found = root;
  for (const part of reference.slice(1).split('/').slice(1)) {
    const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    found =
      typeof found === 'object' && found !== null && Object.hasOwn(found, name) ? found[name] : {};
  }
  return found;
}

/** The only type that a schema allows besides null; undefined if there are several. */
export function typeOf(schema) {
  const types = [schema.type ?? []].flat().filter((type) => type !== 'null');
  if (types.length === 1) return types[0];
  if (types.length > 1) return undefined;
  if (schema.properties !== undefined) return 'object';
  if (schema.items !== undefined) return 'array';
  return undefined;
}

/** The values that a schema allows, with labels; undefined if they are not a list. */
export function choicesOf(schema) {
  const { enum: values, oneOf, anyOf } = schema;
  const named = oneOf ?? anyOf;
  if (Array.isArray(named) && named.every((one) => one !== null && Object.hasOwn(one, 'const'))) {
    return named.map(({ const: value, title }) => ({ value, label: title ?? textOf(value) }));
  }
  if (!Array.isArray(values)) return undefined;
  return values.filter((value) => value !== null).map((value) => ({ value, label: textOf(value) }));
}

/** Converts a text of the query to a value of a schema; several texts if it is an array. */
export function valueOfText(texts, schema, root) {
  if (typeOf(schema) === 'array') {
    const items = resolved(schema.items, root);
    return [texts].flat().map((text) => valueOfText(text, items, root));
  }
  const [text] = [texts].flat();
  const choice = choicesOf(schema)?.find(({ value }) => textOf(value) === text);
  if (choice !== undefined) return choice.value;
  return typeOf(schema) === 'boolean' ? ['true', 'on', '1'].includes(text) : text;
}

/** The properties of an object schema in order: name, schema, and whether it is required. */
export function propertiesOf(schema, root) {
  const { properties, required = [] } = schema;
  return Object.entries(properties ?? {}).map(([name, property]) => ({
    name,
    schema: resolved(property, root),
    isRequired: required.includes(name),
  }));
}

/** The label of a field: its title, or its name as words. */
export function labelOf(name, { title }) {
  if (typeof title === 'string' && title !== '') return title;
  const spaced = name.replace(/[_-]+/g, ' ').replace(/([a-z])([A-Z])/g, '$1 $2');
  return spaced.charAt(0).toUpperCase() + spaced.slice(1).toLowerCase();
}

/** Whether two JSON values are equal; the order of members does not count. */
export function sameValue(one, other) {
  return JSON.stringify(one, inOrder) === JSON.stringify(other, inOrder);
}

function inOrder(_name, value) {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject || ('isRawJSON' in JSON && JSON.isRawJSON(value))) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A JSON value as a text: a text as it is, else its JSON. */
export function textOf(value) {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
