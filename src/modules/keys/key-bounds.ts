import { parseOriginPattern } from '../../core/values/network/origin-pattern.ts';
import type { Bounds } from '../../core/values/bounds.ts';
import { Failure } from '../../core/values/failure.ts';
import { type Scope, boundScopes } from '../../core/values/key.ts';
import { originBytesMax, pathBytesMax } from '../../core/values/limits.ts';
import { canonicalPath, encodeNonAscii } from '../../core/values/path.ts';

/** Origins and paths to which one key is bound. */
const boundOriginsMax = 16;
const boundPathsMax = 64;

const text = { type: 'string', minLength: 1 } as const;
const list = { type: 'array', nullable: true, minItems: 1, uniqueItems: true } as const;

/** The input fields that bind a new key to a part of the site. */
export const boundsInput = {
  origins: {
    ...list,
    maxItems: boundOriginsMax,
    items: { ...text, maxLength: originBytesMax },
    description:
      'Binds the key to page rules of these origins; https://*.example.com stands for all ' +
      'subdomains of example.com.',
  },
  paths: {
    ...list,
    maxItems: boundPathsMax,
    items: { ...text, maxLength: pathBytesMax },
    description:
      'Binds the key to page rules and breadcrumbs below these paths: /blog/ stands for all ' +
      'below it, /blog also for /blog itself.',
  },
} as const;

/** The bounds of a key in an answer. */
export const boundsMembers = {
  origins: { type: 'array', items: { type: 'string' }, description: 'What it is bound to.' },
  paths: { type: 'array', items: { type: 'string' }, description: 'What it is bound to.' },
} as const;

/**
 * The bounds of a new key in canonical form. Throws `invalid` for a text that is no origin or path,
 * and for a scope that a bound key cannot have.
 */
export function parseBounds({ origins, paths }: Bounds, scopes: readonly Scope[]): Bounds {
  if (origins === undefined && paths === undefined) return {};
  const other = scopes.find((one) => !boundScopes.includes(one));
  if (other !== undefined) {
    throw new Failure(
      'invalid',
      `A key with origins or paths can have the scopes ${boundScopes.join(', ')}: ${other} is ` +
        'not about a place of the site.',
      { field: 'scopes' },
    );
  }
  return {
    ...(origins && { origins: [...new Set(origins.map(boundOrigin))] }),
    ...(paths && { paths: [...new Set(paths.map(parseBoundPath))] }),
  };
}

function boundOrigin(given: string): string {
  const origin = parseOriginPattern(given.replace(/\/$/, ''));
  if (origin !== undefined && origin !== '*') return origin;
  throw new Failure(
    'invalid',
    'origins must be scheme://host[:port], with http or https, or https://*.example.com.',
    { field: 'origins' },
  );
}

function parseBoundPath(given: string): string {
  const path = canonicalPath(encodeNonAscii(given));
  if (path !== undefined && !path.includes('*')) return path;
  throw new Failure(
    'invalid',
    `${JSON.stringify(given.slice(0, 80))} is not the start of paths: write one such as /blog/, ` +
      'without *.',
    { field: 'paths' },
  );
}
