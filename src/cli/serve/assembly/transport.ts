import { cachedFetch } from '../../../modules/cache/cached-fetch.ts';
import type { Config } from '../../../core/config/config.ts';
import { newId, now } from '../../../core/values/clock.ts';
import { createDialler, type Dialler } from '../../../core/outbound/dialler.ts';
import { createLookup } from '../../../core/outbound/dns-lookup.ts';
import { createServiceLookup } from '../../../modules/proxy/srv-lookup.ts';
import {
  createFetcher,
  withFailureEvents,
  withOwnFields,
  withUsers,
  type Fetcher,
} from '../../../modules/proxy/fetcher.ts';
import { HealthChecks } from '../../../modules/proxy/health-checks.ts';
import { withCompression } from '../../../modules/proxy/response-compression.ts';
import {
  createSourceDiallers,
  type SourceDiallers,
} from '../../../modules/proxy/source-diallers.ts';
import { SourceNames } from '../../../modules/proxy/source-names.ts';
import { identityFieldsOf } from '../../../modules/visitors/visitor.ts';
import type { AppContext, SourceContext } from './context.ts';

/** Requests to other servers, and the checks of those. */
export interface SourceAccess {
  readonly dialler: Dialler;
  readonly diallers: SourceDiallers;
  readonly names: SourceNames;
  readonly checks: HealthChecks;
}

/** Makes the connections to other servers. */
export function composeSourceAccess(
  { fetch }: Config,
  { statistics, health }: SourceContext,
  traced: (dialler: Dialler) => Dialler,
): SourceAccess {
  const connected = (origin: string) => statistics.connected(origin);
  const dialler = traced(createDialler({ ...fetch, connected }));
  const diallers = createSourceDiallers(dialler, fetch, { connected, traced });
  const monotonicMs = () => performance.now();
  const names = new SourceNames({ lookup: createLookup(), lookUpService: createServiceLookup() });
  const checks = new HealthChecks({ diallers, names, health, monotonicMs });
  return { dialler, diallers, names, checks };
}

/** Fetched content: compression in front of the cache, in front of the source. */
export function composeFetch(
  config: Config,
  { sources, content: { compressors }, emit }: Pick<AppContext, 'sources' | 'content' | 'emit'>,
  { diallers, names, checks }: SourceAccess,
): Fetcher {
  const { answers, health, statistics } = sources;
  const via = 'waymark';
  const { bodyBytesMax, cacheBytesMax } = config.fetch;
  const fetch = withFailureEvents(
    createFetcher({
      ...{ diallers, health, names, checks, bodyBytesMax, statistics, via },
    }),
    (failure) => void emit('error.detected', failure),
  );
  const copied = config.access.flatMap(({ copy }) => copy);
  const identityFields = [...identityFieldsOf(config), ...copied];
  const parts = { fetch, answers, now, newId, via, identityFields };
  const cached = cacheBytesMax === 0 ? fetch : cachedFetch(parts);
  return withUsers(withOwnFields(withCompression(cached, compressors.responses)));
}
