import type { Reads } from '../../log/store.ts';
import { type Caller, hasScope } from '../../values/key.ts';

/** Characters of the id of a key, a UUID; commands and users have no rows of their own. */
const keyIdCharacters = 36;

/**
 * The name of the key that made a change: also of one that is revoked or has ended, because the log
 * keeps who it was. Undefined for an author that is no key.
 */
export function authorName(reads: Pick<Reads, 'key' | 'rows'>, by: string): string | undefined {
  const name = reads.key(by)?.name;
  if (name !== undefined || by.length > keyIdCharacters) return name;
  const named = reads.rows('key', by).findLast(({ data }) => typeof data.name === 'string');
  return named?.data.name as string | undefined;
}

/** The member of an answer with the name of an author, for callers who may list keys. */
export function namedAuthor(
  reads: Pick<Reads, 'key' | 'rows'>,
  by: string,
  reader: Pick<Caller, 'scopes'>,
): { readonly by_name?: string } {
  const name = hasScope(reader, 'admin') ? authorName(reads, by) : undefined;
  return name === undefined ? {} : { by_name: name };
}

/** JSON Schema of the member. */
export const byNameSchema = {
  type: 'string',
  description: 'Name of the key, also of one that is revoked, for the scope admin.',
} as const;
