import { deserialize, serialize } from 'node:v8';
import { parseCidr } from '../model/cidr.ts';
import type { Config } from './config.ts';

/** A configuration as text, for another process of the same version. */
export function packConfig(config: Config): string {
  return serialize(config).toString('base64');
}

/** The configuration that packConfig has made a text of, frozen as it was. */
export function unpackConfig(text: string): Config {
  return revived(deserialize(Buffer.from(text, 'base64'))) as Config;
}

/** A network has methods, with which its text makes it again. */
function revived(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const network = 'network' in value && 'text' in value ? parseCidr(String(value.text)) : undefined;
  if (network !== undefined) return Object.freeze(network);
  for (const [name, member] of Object.entries(value)) Reflect.set(value, name, revived(member));
  return Object.freeze(value);
}
