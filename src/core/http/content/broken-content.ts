import type { Readable } from 'node:stream';
import type { Failure } from '../../values/failure.ts';

/** Content that cannot be read whole, with the failure. */
const broken = new WeakMap<Readable, Failure>();

/**
 * Fails the content of a request, for its present or future reader; returns whether there is one
 * now.
 */
export function failBody(body: Readable, failure: Failure): boolean {
  broken.set(body, failure);
  return body.listenerCount('error') > 0 && body.emit('error', failure);
}

/**
 * Throws the failure of the content of a request, if it has one: to be called right before it is
 * read, since it may have failed while the request waited.
 */
export function requireIntactBody(body: Readable): void {
  const failure = broken.get(body);
  if (failure !== undefined) throw failure;
}
