import { createRequire } from 'node:module';

/*
 * Packages that the server needs later than at its start, or never. Loading them takes a third of
 * the time of a start, so the first call loads each. They load synchronously, because the functions
 * that call them return no promises. packaging/bundle.ts replaces this `require`.
 */
const require = createRequire(import.meta.url);

/** ajv, which compiles JSON Schema 2020-12. */
export function loadAjv2020(): typeof import('ajv/dist/2020.js') {
  return require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js');
}

/** diff, which finds the lines that differ between two texts. */
export function loadDiff(): typeof import('diff') {
  return require('diff') as typeof import('diff');
}

/** The parts of jose that verify the tokens of users. */
export function loadJose(): typeof import('jose/errors') &
  typeof import('jose/jwks/local') &
  typeof import('jose/jwt/verify') {
  return {
    ...(require('jose/errors') as typeof import('jose/errors')),
    ...(require('jose/jwks/local') as typeof import('jose/jwks/local')),
    ...(require('jose/jwt/verify') as typeof import('jose/jwt/verify')),
  };
}

/** ws, which reads and writes the frames of websockets. */
export function loadWs(): typeof import('ws') {
  return require('ws') as typeof import('ws');
}

/** Loads what the requests of visitors may need, for a server that gets many of them at once. */
export function loadForVisitors(): void {
  loadAjv2020();
  loadWs();
}

/**
 * The name of a package that is not installed and that a function needs; undefined if it loads all.
 * Rejects with any other error of the function.
 */
export async function missingPackage(load: () => unknown): Promise<string | undefined> {
  try {
    await load();
    return undefined;
  } catch (error) {
    const name = missingIn(error);
    if (name === undefined) throw error;
    return name;
  }
}

/** The package that an error says is not installed; undefined for any other error. */
export function missingIn(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_MODULE_NOT_FOUND') return undefined;
  const [, path = ''] = /^Cannot find (?:module|package) '([^'./][^']*)'/.exec(error.message) ?? [];
  const [, name] = /^((?:@[^/]+\/)?[^/]+)/.exec(path) ?? [];
  return name;
}

/** The client of a request for which an answer may be reused. */
export interface ReuseClient {
  readonly address: string;
  /** Its field Authorization. */
  readonly authorization: string | undefined;
  /** Its field Cookie. */
  readonly cookie: string | undefined;
  /** Whether the request came over TLS. */
  readonly isSecure: boolean;
}
