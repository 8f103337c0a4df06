import { LRUCache } from 'lru-cache';
import { SharedLimit, type Shares } from '../../core/fair/shared-limit.ts';
import { SharedTasks } from '../../core/fair/shared-tasks.ts';
import { createDialler } from '../../core/outbound/dialler.ts';
import type { Log } from '../../core/report/log.ts';
import { Failure } from '../../core/values/failure.ts';
import { parseCidr } from '../../core/values/network/cidr.ts';

/** How long an answer about a name on demand holds, and a missing one; and of how many names. */
const permissionMs = 60_000;
const permissionFailedMs = 10_000;
const permissionsMax = 10_000;

/**
 * Questions about names on demand: at the same time, with the least time that one takes its place,
 * so that there are ten a second, and those that wait for a place.
 */
export const questionsAtOnceMax = 8;
export const questionHeldMs = 800;
const questionsWaitingMax = 256;

/** How long a question may take. */
export const questionMs = 5_000;

/** Lines of the log about questions without an answer: one in this time. */
const questionLogMs = 60_000;

/** Whether a certificate may be obtained; `unknown` before the URL has answered. */
type Permission = 'allowed' | 'refused' | 'unknown';

/** Sends a question; resolves to the status of the answer, and rejects without one. */
type AskPermission = (host: string) => Promise<number>;

/**
 * Asks the URL of `acme_on_demand`, with the name in the query as `domain`; `via` as for a dialler.
 */
export function createAsk(
  given: string,
  via?: string,
): {
  readonly ask: AskPermission;
  readonly close: () => Promise<void>;
} {
  const url = new URL(given);
  // The operator names the URL, which may be in a private network.
  const allowPrivate = ['0.0.0.0/0', '::/0'].flatMap((text) => parseCidr(text) ?? []);
  const times = { connectTimeoutMs: questionMs, timeoutMs: questionMs };
  const dialler = createDialler({ allowPrivate, via, ...times });
  return {
    async ask(host) {
      const search = `${url.search === '' ? '?' : `${url.search}&`}domain=${host}`;
      const answer = await dialler.send({
        ...{ origin: url.origin, target: url.pathname + search, method: 'GET' },
        ...{ fields: [], body: undefined, signal: AbortSignal.timeout(questionMs) },
      });
      answer.discard();
      return answer.status;
    },
    close: () => dialler.close(),
  };
}

/**
 * What the operator's URL says about names. It gets one request for each name at a time, at a
 * bounded pace that clients share, and its answers are remembered for a minute.
 */
export class Permissions {
  readonly #ask: AskPermission;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #known = new LRUCache<string, { permission: Permission; untilMs: number }>({
    max: permissionsMax,
  });
  readonly #asking = new SharedTasks<Permission>(new SharedLimit(questions));
  /** The questions that the URL has not answered. */
  readonly #asked = new Map<string, Promise<Permission>>();
  #loggedMs = -Infinity;

  constructor(ask: AskPermission, { log, now }: { readonly log: Log; readonly now: () => number }) {
    this.#ask = ask;
    this.#log = log;
    this.#now = now;
  }

  /**
   * What is known of a name, or an answer; `unknown` if it is not the turn of the client's network
   * in time.
   */
  async of(host: string, address: string): Promise<Permission> {
    const known = this.#known.get(host);
    if (known !== undefined && this.#now() < known.untilMs) return known.permission;
    const client = { keyId: undefined, address };
    try {
      return await this.#asking.run(host, client, () => this.#askNow(host));
    } catch (error) {
      if (error instanceof Failure) return 'unknown';
      throw error;
    }
  }

  /** As of, for an order: the number of orders is bounded, and so no question is left out. */
  async confirm(host: string): Promise<Permission> {
    const known = this.#known.get(host);
    const isKnown = known !== undefined && this.#now() < known.untilMs;
    return isKnown ? known.permission : this.#askNow(host);
  }

  /** Asks, unless a question about the name is on its way. */
  #askNow(host: string): Promise<Permission> {
    const asked =
      this.#asked.get(host) ??
      this.#answer(host).then((permission) => {
        this.#asked.delete(host);
        const forMs = permission === 'unknown' ? permissionFailedMs : permissionMs;
        this.#known.set(host, { permission, untilMs: this.#now() + forMs });
        return permission;
      });
    this.#asked.set(host, asked);
    return asked;
  }

  async #answer(host: string): Promise<Permission> {
    try {
      const status = await this.#ask(host);
      if (status === 200) return 'allowed';
      if (status < 500) return 'refused';
      this.#logFailure(host, `it answers ${status}`);
    } catch (error) {
      this.#logFailure(host, error instanceof Error ? error.message : String(error));
    }
    return 'unknown';
  }

  #logFailure(host: string, reason: string): void {
    const nowMs = this.#now();
    if (Math.abs(nowMs - this.#loggedMs) < questionLogMs) return;
    this.#loggedMs = nowMs;
    const message = 'The URL of acme_on_demand does not say whether a name may have a certificate.';
    this.#log.warn({ host, reason }, message);
  }
}

const questions: Shares = {
  what: 'names without a certificate',
  held: 'long',
  max: questionsAtOnceMax,
  heldMsMin: questionHeldMs,
  waiting: { max: questionsWaitingMax, ms: questionMs },
};
