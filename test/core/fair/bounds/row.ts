import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { LimitName } from '../../../../src/core/values/limit.ts';
import type { TestSite } from '../../../harness.ts';

/**
 * A bound of the server. A takes all that it can get of it, and goes on; B is served within twice
 * the time that it takes alone.
 */
export interface Row {
  readonly bound: string;
  /** The files with the limits, below src/. */
  readonly of: readonly string[];
  /** The names of the limits in the log. */
  readonly limits?: readonly LimitName[];
  readonly start: (t: TestContext) => Promise<Attacked>;
}

/** A server with a bound of which A takes all. */
export interface Attacked {
  /** One request of B; rejects if it is not served. */
  readonly ask: (at: number) => Promise<unknown>;
  /** Begins the attack of A; resolves when A has all that it can get. */
  readonly attack: () => Promise<unknown>;
}

/** The addresses of the clients. */
export const [addressA, addressB, addressC] = ['198.51.100.1', '192.0.2.1', '203.0.113.1'] as const;
/** A site whose clients say their addresses. */
export const behindProxy = { server: 'trust_proxy = 127.0.0.1' };

/** A new key of A. */
export async function newKey(site: TestSite, ...scopes: readonly string[]): Promise<string> {
  const { data } = await site.call('svc1.key.insert', { name: 'A', scopes });
  return (data as { readonly key: string }).key;
}

/** Repeats requests of A without an end, so many at a time. */
export function floodWith(
  t: TestContext,
  count: number,
  ask: (at: number) => Promise<unknown>,
): Promise<unknown> {
  const ended = new AbortController();
  t.after(() => {
    ended.abort();
  });
  let [at, served] = [0, 0];
  const begun = Promise.withResolvers<undefined>();
  const go = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      at += 1;
      await ask(at).catch(() => undefined);
      // A refusal comes at once: the client is one of many, and not the machine itself.
      await delay(20);
      served += 1;
      if (served === 3) begun.resolve(undefined);
    }
  };
  for (let one = 0; one < count; one += 1) void go();
  return begun.promise;
}

/** Asks for a page as a client of an address; rejects without a 200. */
export async function pageOf(site: TestSite, path: string, from: string, more = {}): Promise<void> {
  const headers = { 'x-forwarded-for': from, ...more };
  const response = await fetch(site.url + path, { headers });
  await response.arrayBuffer();
  assert.equal(response.status, 200, `${path} of ${from}`);
}
