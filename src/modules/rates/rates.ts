import { whenReady } from '../../core/values/when-ready.ts';
import { hash } from 'node:crypto';
import type { RateConfig } from '../../core/config/config.ts';
import type { RatedRequest, Rates } from '../../core/fair/rates.ts';
import type { RateCounts, TakeToken, Taken, TokenOrder } from '../../core/fair/token-buckets.ts';
import { needsUser } from '../../core/http/visitor.ts';
import { createProtectedPaths } from '../../core/pipeline/protected-paths.ts';
import { Failure } from '../../core/values/failure.ts';
import { addressNetwork } from '../../core/values/network/cidr.ts';
import { networksOf } from '../access/conditions.ts';

/** Characters of a user, key or field in memory; of a longer one, its hash counts. */
const ownerCharactersMax = 64;

interface Rate extends RateConfig {
  readonly login: undefined;
  readonly intervalMs: number;
  readonly burstTokens: number;
  readonly periodSeconds: number;
  readonly isExempt: (address: string) => boolean;
}

/** What the rates of all configurations share. */
export interface RateParts {
  readonly take: TakeToken;
  /** Whether another process has the buckets, so that `take` asks it. */
  readonly isElsewhere: boolean;
  readonly counts: RateCounts;
}

/** Creates the rates of a configuration; undefined without any. */
export function createRates(configs: readonly RateConfig[], parts: RateParts): Rates | undefined {
  if (configs.length === 0) return undefined;
  const ratesOf = createProtectedPaths(configs.map(prepared), []);
  return {
    count(request) {
      const { origin, countedFor = [] } = request;
      const counted = countedFor.flatMap((path) => ratesOf({ origin, path }));
      const rates = ratesOf(request).filter((one) => !counted.includes(one));
      return countAll(rates, request, parts);
    },
    countPlain(request) {
      const rates = ratesOf(request).filter(({ isExempt }) => !isExempt(request.address));
      if (rates.length === 0) return true;
      if (rates.length > 1 || rates[0]?.by !== 'address' || parts.isElsewhere) return false;
      const [rate] = rates;
      const taken = take(rate, { client: clientOf(request.address) }, parts);
      if (taken instanceof Promise) throw new TypeError('the buckets are elsewhere');
      if (taken.isTaken) parts.counts.add(rate.name, 'passed');
      return taken.isTaken;
    },
    covers: (place) => ratesOf(place).length > 0,
    explain: (place) => ratesOf(place).map(explained),
  };
}

function prepared(config: RateConfig): Rate {
  const { count, periodMs } = config.rate;
  return {
    ...config,
    login: undefined,
    intervalMs: periodMs / count,
    burstTokens: config.burst ?? count,
    periodSeconds: periodMs / 1_000,
    isExempt: networksOf(config.exempt),
  };
}

function countAll(
  [rate, ...others]: readonly Rate[],
  request: RatedRequest,
  parts: RateParts,
): void | Promise<void> {
  if (rate === undefined) return undefined;
  const next = (): void | Promise<void> => countAll(others, request, parts);
  if (rate.isExempt(request.address)) return next();
  const decide = (taken: Taken): void | Promise<void> => {
    parts.counts.add(rate.name, taken.isTaken ? 'passed' : 'refused');
    if (!taken.isTaken) throw refusal(rate, taken);
    return next();
  };
  const ask = (): void | Promise<void> => {
    return whenReady(take(rate, bucketOf(rate, request), parts), decide);
  };
  const wait = rate.by === 'user' ? request.visitor().prepare(needsUser) : undefined;
  return wait === undefined ? ask() : wait.then(ask);
}

/** Who has a bucket, and the network that has named it. */
type Bucket = Pick<TokenOrder, 'client' | 'from'>;

/** Who the bucket belongs to. The kinds have different beginnings, so that none is another's. */
function bucketOf({ by }: Rate, request: RatedRequest): Bucket {
  const own = (): string | undefined => {
    if (by === 'user') return request.visitor().signedInUser()?.name;
    if (by === 'key') return request.keyId();
    return by === 'address' ? undefined : request.fields[by.slice('field:'.length)];
  };
  const owner = own();
  if (owner === undefined) return { client: clientOf(request.address) };
  // A field may be long, and buckets are many.
  const text = owner.length <= ownerCharactersMax ? owner : `#${shortHash(owner)}`;
  // Anybody can write any value into a field.
  const from = by.startsWith('field:') ? { from: addressNetwork(request.address) } : {};
  return { client: `${by} ${text}`, ...from };
}

function shortHash(text: string): string {
  return hash('sha256', text, 'base64url');
}

function clientOf(address: string): string {
  return `address ${addressNetwork(address)}`;
}

function take(
  { name, intervalMs, burstTokens }: Rate,
  bucket: Bucket,
  parts: RateParts,
): Taken | Promise<Taken> {
  // A rate of 0 has no tokens.
  if (intervalMs === Infinity) return { isTaken: false, left: 0, waitMs: Infinity, fullMs: 0 };
  return parts.take({ rate: name, ...bucket, intervalMs, burst: burstTokens });
}

/** The refusal (RFC 6585 §4), with the RateLimit fields of the IETF's draft for them. */
function refusal(rate: Rate, { left, waitMs, fullMs }: Taken): Failure {
  const { name, status, periodSeconds } = rate;
  const seconds = (ms: number): number => Math.max(1, Math.ceil(Math.min(ms, 86_400_000) / 1_000));
  const wait = waitMs === Infinity ? periodSeconds : seconds(waitMs);
  const says =
    waitMs === Infinity
      ? 'Nothing may be asked for here now.'
      : `Too many requests: the next one may come in ${wait} s.`;
  return new Failure('rate_limited', says, {
    retryAfterSeconds: wait,
    source: `rate:${name}`,
    isPrivate: true,
    fields: [
      ...['RateLimit-Policy', `"${name}";q=${rate.rate.count};w=${periodSeconds}`],
      ...['RateLimit', `"${name}";r=${left};t=${Math.min(seconds(fullMs), wait)}`],
    ],
    ...(status !== 429 && { status }),
  });
}

function explained({ name, rate, burstTokens, by, exempt }: Rate): string {
  const { count, periodMs } = rate;
  const period = periodMs < 60_000 ? 'second' : periodMs < 3_600_000 ? 'minute' : 'hour';
  const named = periodMs >= 86_400_000 ? 'day' : period;
  const whom = by === 'address' ? 'each address' : `each ${by.replace('field:', 'value of ')}`;
  const but = exempt.length === 0 ? '' : ', but not for the networks of `exempt`';
  return `[rate.${name}] lets ${whom} ask ${count} times a ${named}, ${burstTokens} at once${but}.`;
}
