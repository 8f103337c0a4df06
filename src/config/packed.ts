import { deserialize, serialize } from 'node:v8';
import { parseCidr } from '../model/cidr.ts';

/** A text that stands for a value of a type; for another process of the same version. */
export type Packed<T> = string & { readonly packed?: T };

/** Makes a text of a configuration, or of what reading one came to. */
export function pack<T>(value: T): Packed<T> {
  return serialize(value).toString('base64');
}

/** What a text was made of, frozen as it was. */
export function unpack<T>(text: Packed<T>): T {
  return revived(deserialize(Buffer.from(text, 'base64'))) as T;
}

/** A network has methods, with which its text makes it again. */
function revived(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const network = 'network' in value && 'text' in value ? parseCidr(String(value.text)) : undefined;
  if (network !== undefined) return Object.freeze(network);
  for (const [name, member] of Object.entries(value)) Reflect.set(value, name, revived(member));
  return Object.freeze(value);
}
