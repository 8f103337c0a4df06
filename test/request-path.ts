import assert from 'node:assert/strict';
import {
  readRequestPath,
  requestPathOf,
  type CanonicalPath,
  type RequestPath,
} from '../src/core/values/path.ts';

/** Both forms of the path of a request for a canonical path. */
export function pathOf(canonical: string): RequestPath {
  return requestPathOf(canonical as CanonicalPath);
}

/** Both forms of a valid path that a client sends. */
export function sentPath(sent: string): RequestPath {
  const read = readRequestPath(sent);
  assert.ok(!('reason' in read), sent);
  return read;
}
