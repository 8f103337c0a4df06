import { LRUCache } from 'lru-cache';
import { parseCidr } from '../../core/values/network/cidr.ts';
import type { Log } from '../../core/report/log.ts';
import { createDialler } from '../../core/outbound/dialler.ts';
import {
  permissionFailedMs,
  permissionMs,
  permissionsMax,
  questionLogMs,
  questionMs,
  questionsAtOnceMax,
  questionsBurst,
  questionsPerSecond,
} from './limits.ts';

/** Whether a certificate may be obtained; `unknown` before the URL has answered. */
type Permission = 'allowed' | 'refused' | 'unknown';

/** Sends a question; resolves to the status of the answer, and rejects without one. */
type AskPermission = (host: string) => Promise<number>;

/** Asks the URL of `acme_on_demand`, with the name in the query as `domain`. */
export function createAsk(given: string): {
  readonly ask: AskPermission;
  readonly close: () => Promise<void>;
} {
  const url = new URL(given);
  // The operator names the URL, which may be in a private network.
  const allowPrivate = ['0.0.0.0/0', '::/0'].flatMap((text) => parseCidr(text) ?? []);
  const times = { connectTimeoutMs: questionMs, timeoutMs: questionMs };
  const dialler = createDialler({ allowPrivate, ...times });
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
 * bounded pace, and its answers are remembered for a minute.
 */
export class Permissions {
  readonly #ask: AskPermission;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #known = new LRUCache<string, { permission: Permission; untilMs: number }>({
    max: permissionsMax,
  });
  readonly #asking = new Map<string, Promise<Permission>>();
  #tokens = questionsBurst;
  #filledMs = -Infinity;
  #loggedMs = -Infinity;

  constructor(ask: AskPermission, { log, now }: { readonly log: Log; readonly now: () => number }) {
    this.#ask = ask;
    this.#log = log;
    this.#now = now;
  }

  /** What is known of a name, or an answer; `unknown` if there are too many questions. */
  async of(host: string): Promise<Permission> {
    const known = this.#known.get(host);
    const nowMs = this.#now();
    if (known !== undefined && nowMs < known.untilMs) return known.permission;
    const asking = this.#asking.get(host);
    if (asking !== undefined) return asking;
    return this.#takeToken(nowMs) ? this.#askNow(host) : 'unknown';
  }

  /** As of, for an order: the number of orders is bounded, and so no question is left out. */
  async confirm(host: string): Promise<Permission> {
    const known = this.#known.get(host);
    const isKnown = known !== undefined && this.#now() < known.untilMs;
    return isKnown ? known.permission : (this.#asking.get(host) ?? this.#askNow(host));
  }

  #askNow(host: string): Promise<Permission> {
    const asked = this.#answer(host).then((permission) => {
      this.#asking.delete(host);
      const forMs = permission === 'unknown' ? permissionFailedMs : permissionMs;
      this.#known.set(host, { permission, untilMs: this.#now() + forMs });
      return permission;
    });
    this.#asking.set(host, asked);
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

  #takeToken(nowMs: number): boolean {
    const passedMs = Math.max(0, nowMs - this.#filledMs);
    this.#tokens = Math.min(questionsBurst, this.#tokens + (passedMs * questionsPerSecond) / 1_000);
    this.#filledMs = nowMs;
    if (this.#tokens < 1 || this.#asking.size >= questionsAtOnceMax) return false;
    this.#tokens -= 1;
    return true;
  }
}
