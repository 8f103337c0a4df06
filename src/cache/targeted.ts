import { parseDictionary } from 'structured-headers';
import { fieldLines, type FieldList } from '../http/reply.ts';
import { parseDirectives, type Directives } from './directives.ts';

/** Fields for caches like this one, in the order in which they are looked at (RFC 9213 §2.2). */
const targets = ['cdn-cache-control'] as const;

/** The directives that hold for this cache. */
interface Governing {
  readonly directives: Directives;
  /** Whether they come from a targeted field: Cache-Control and Expires say nothing then. */
  readonly isTargeted: boolean;
}

/**
 * The directives of an answer for a shared cache: those of the first targeted field that can be
 * read and is not empty (RFC 9213 §2.2), else those of Cache-Control.
 */
export function governingDirectives(fields: FieldList): Governing {
  for (const target of targets) {
    const lines = fieldLines(fields, target);
    const directives = lines.length === 0 ? undefined : parseTargeted(lines.join(', '));
    if (directives !== undefined && directives.size > 0) return { directives, isTargeted: true };
  }
  const lines = fieldLines(fields, 'cache-control');
  const directives = parseDirectives(lines.length === 0 ? undefined : lines.join(', '));
  return { directives, isTargeted: false };
}

/**
 * A targeted field as a Dictionary of Structured Fields (RFC 9213 §2.1): undefined where it is
 * none. An argument of a type that its directive cannot have counts as one that cannot be read.
 */
function parseTargeted(field: string): Directives | undefined {
  const directives = new Map<string, string | true | undefined>();
  try {
    for (const [name, [value]] of parseDictionary(field)) {
      // `?0` says that the directive is not there.
      if (value !== false) directives.set(name, argumentOf(name, value));
    }
  } catch {
    return undefined;
  }
  return directives;
}

function argumentOf(name: string, value: unknown): string | true | undefined {
  if (value === true) return true;
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : undefined;
  return typeof value === 'string' && (name === 'no-cache' || name === 'private')
    ? value
    : undefined;
}
