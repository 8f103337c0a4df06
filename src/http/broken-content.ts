import { Readable } from 'node:stream';
import type { Failure } from '../model/failure.ts';

/** Requests with incomplete content, with the failure. */
const broken = new WeakMap<object, Failure>();

/**
 * Fails the content of a request, for its present or future reader; returns whether there is one
 * now.
 */
export function breakBody(request: object, failure: Failure): boolean {
  broken.set(request, failure);
  if (!(request instanceof Readable)) return false;
  return request.listenerCount('error') > 0 && request.emit('error', failure);
}

/** Whether the content of a request has not failed. */
export function isWhole(request: object): boolean {
  return !broken.has(request);
}

/**
 * Throws the failure of the content of a request, if it has one: to be called right before it is
 * read, since it may have failed while the request waited.
 */
export function requireWhole(request: object): void {
  const failure = broken.get(request);
  if (failure !== undefined) throw failure;
}
