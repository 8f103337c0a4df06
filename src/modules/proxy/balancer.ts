import { hash } from 'node:crypto';
import type { ContentRequest, Fields } from '../../core/http/request.ts';
import { addressNetwork } from '../../core/values/network/cidr.ts';
import { encodePath } from '../../core/values/path.ts';
import type { FetchPlan, SourceTarget } from './fetch-plan.ts';
import type { SourceHealth, SourceLoad } from './source-health.ts';

/** The cookie that keeps a visitor at one source; its value is the mark of the source. */
const sourceCookie = 'waymark_source';

/** What the order of the sources depends on, besides their load. */
type BalancedRequest = Pick<ContentRequest, 'fields' | 'address'>;

/** A target with what decides its place. */
interface Candidate extends SourceLoad {
  readonly target: SourceTarget;
  readonly weight: number;
  /** Its place among those that nothing else tells apart: the highest comes first. */
  credit: number;
}

/** Orders the targets of each request by the `balance` of its plan. */
export class Balancer {
  readonly #health: Pick<SourceHealth, 'now' | 'loadOf'>;
  /** The credits of the sources of each plan, by their marks. */
  readonly #credits = new WeakMap<FetchPlan, Map<string, number>>();

  constructor(health: Pick<SourceHealth, 'now' | 'loadOf'>) {
    this.#health = health;
  }

  /**
   * The targets in the order in which to try them: the one of the visitor or with the least load
   * first. Sources of weight 0 follow, then those whose health check fails, then those that are set
   * aside, in the order in which their pauses end.
   */
  order(
    plan: FetchPlan,
    targets: readonly SourceTarget[],
    request: BalancedRequest,
  ): readonly SourceTarget[] {
    const nowMs = this.#health.now();
    const candidates = targets.map((target): Candidate => {
      const { server, weight } = target.source;
      const load = this.#health.loadOf(server, plan.health?.path, nowMs);
      return { target, weight, credit: 0, ...load };
    });
    const credits = this.#creditsOf(plan, targets);
    const preferred = preferredMark(plan, targets, request);
    for (const one of candidates) {
      one.credit =
        plan.balance === 'address'
          ? addressCredit(one.target, request.address)
          : (credits.get(one.target.source.mark) ?? 0) + one.weight;
    }
    const ordered = candidates.toSorted(
      (a, b) =>
        a.rank - b.rank ||
        a.pausedUntilMs - b.pausedUntilMs ||
        Number(b.target.source.mark === preferred) - Number(a.target.source.mark === preferred) ||
        Number(b.weight > 0) - Number(a.weight > 0) ||
        (plan.balance === 'least' ? relativeLoad(a) - relativeLoad(b) : 0) ||
        b.credit - a.credit,
    );
    if (plan.balance !== 'address' && preferred === undefined) takeTurn(credits, ordered);
    return ordered.map(({ target }) => target);
  }

  #creditsOf(plan: FetchPlan, targets: readonly SourceTarget[]): Map<string, number> {
    let credits = this.#credits.get(plan);
    if (credits === undefined) this.#credits.set(plan, (credits = new Map<string, number>()));
    // The addresses of a name change: forget those that are gone.
    if (credits.size > targets.length) {
      const marks = new Set(targets.map(({ source }) => source.mark));
      for (const mark of credits.keys()) if (!marks.has(mark)) credits.delete(mark);
    }
    return credits;
  }
}

function relativeLoad({ open, weight }: Candidate): number {
  return open / Math.max(weight, 1);
}

/**
 * The smooth weighted round robin of nginx: each usable source gets its weight as credit, and the
 * chosen one pays the sum. Sources of a high weight do not get their requests in a row.
 */
function takeTurn(credits: Map<string, number>, ordered: readonly Candidate[]): void {
  const [first] = ordered;
  if (first === undefined) return;
  const usable = ordered.filter(({ rank }) => rank === first.rank);
  let sum = 0;
  for (const { target, credit, weight } of usable) {
    credits.set(target.source.mark, credit);
    sum += weight;
  }
  credits.set(first.target.source.mark, first.credit - sum);
}

/** The mark in the cookie of the visitor, if one of the targets has it. */
function preferredMark(
  plan: FetchPlan,
  targets: readonly SourceTarget[],
  { fields }: BalancedRequest,
): string | undefined {
  if (plan.balance !== 'cookie') return undefined;
  const marks = sentMarks(fields);
  return targets.find(({ source }) => marks.has(source.mark))?.source.mark;
}

/**
 * Weighted rendezvous hashing: each address has its own order of the sources, and keeps it when
 * others come or go.
 */
function addressCredit({ source }: SourceTarget, address: string): number {
  const digits = hash('sha1', `${source.mark} ${addressNetwork(address)}`).slice(0, 12);
  const share = (parseInt(digits, 16) + 1) / (2 ** 48 + 1);
  return -source.weight / Math.log(share);
}

/** The values of the cookie; a browser sends one for each path that has set it. */
function sentMarks({ cookie = '' }: Fields): ReadonlySet<string> {
  const values = cookie.split(';').flatMap((pair) => {
    const [name = '', value = ''] = pair.split('=', 2);
    return name.trim() === sourceCookie ? [value.trim()] : [];
  });
  return new Set(values);
}

/** The value of a Cookie field without the cookie; undefined if no other one is in it. */
export function withoutSourceCookie(cookie: string | undefined): string | undefined {
  if (cookie?.includes(sourceCookie) !== true) return cookie;
  const others = cookie.split(';').filter((pair) => pair.split('=', 1)[0]?.trim() !== sourceCookie);
  const left = others.join(';').trim();
  return left === '' ? undefined : left;
}

/**
 * The Set-Cookie that keeps a visitor at the source that has answered; undefined if the visitor has
 * it already.
 */
export function stickyCookie(
  plan: FetchPlan,
  { source }: SourceTarget,
  { fields, origin }: Pick<ContentRequest, 'fields' | 'origin'>,
): string | undefined {
  if (plan.balance !== 'cookie' || sentMarks(fields).has(source.mark)) return undefined;
  // A semicolon would end the attribute.
  const [prefix = '/'] = encodePath(plan.visiblePrefix).split(';', 1);
  const path = prefix.slice(0, prefix.lastIndexOf('/') + 1);
  const secure = origin.startsWith('https:') ? '; Secure' : '';
  return `${sourceCookie}=${source.mark}; Path=${path}; HttpOnly; SameSite=Lax${secure}`;
}
