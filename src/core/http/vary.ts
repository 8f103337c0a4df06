import { replyField, type FieldList } from './reply.ts';

/**
 * Returns the fields with one Vary (RFC 9110 §12.5.5) that names the given request fields and those
 * that the fields name already. `*` replaces all names; several Vary fields become one.
 */
export function withVary(fields: FieldList, ...names: readonly string[]): FieldList {
  if (replyField({ fields }, 'vary') === undefined) return [...fields, ...varyOf(names)];
  const others: string[] = [];
  const named = new Map<string, string>();
  const add = (name: string): void => {
    const lower = name.toLowerCase();
    if (name !== '' && !named.has(lower)) named.set(lower, name);
  };
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at], fields[at + 1]];
    if (name.toLowerCase() !== 'vary') others.push(name, value);
    else for (const one of value.split(',')) add(one.trim());
  }
  names.forEach(add);
  return [...others, ...varyOf(named.has('*') ? ['*'] : [...named.values()])];
}

function varyOf(names: readonly string[]): FieldList {
  return names.length === 0 ? [] : ['Vary', names.join(', ')];
}
