import type { Config } from '../../../core/config/config.ts';
import { type Dialler, createDialler } from '../../../core/outbound/dialler.ts';
import { createLookup } from '../../../core/outbound/dns-lookup.ts';
import { newId, now } from '../../../core/values/clock.ts';
import { cachedFetch } from '../../../modules/cache/cached-fetch.ts';
import {
  type Fetcher,
  createFetcher,
  withFailureEvents,
  withOwnFields,
  withUsers,
} from '../../../modules/proxy/fetcher.ts';
import { HealthChecks } from '../../../modules/proxy/health-checks.ts';
import { withCompression } from '../../../modules/proxy/response-compression.ts';
import {
  type SourceDiallers,
  createSourceDiallers,
} from '../../../modules/proxy/source-diallers.ts';
import { SourceNames, createServiceLookup } from '../../../modules/proxy/source-names.ts';
import { identityFieldsOf } from '../../../core/pipeline/incoming-request.ts';
import type { AppContext } from './context.ts';

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
  { sources: { statistics, health }, ownNames }: Pick<AppContext, 'sources' | 'ownNames'>,
  traced: (dialler: Dialler) => Dialler,
): SourceAccess {
  const connected = (origin: string) => statistics.connected(origin);
  const { ofNode: via } = ownNames;
  const dialler = traced(createDialler({ ...fetch, connected, via }));
  const diallers = createSourceDiallers(dialler, fetch, { connected, traced, via });
  const monotonicMs = () => performance.now();
  const names = new SourceNames({ lookup: createLookup(), lookUpService: createServiceLookup() });
  const checks = new HealthChecks({ diallers, names, health, monotonicMs });
  return { dialler, diallers, names, checks };
}

/** Fetched content: compression in front of the cache, in front of the source. */
export function composeFetch(
  config: Config,
  {
    sources,
    content: { compressors },
    emit,
    ownNames: via,
  }: Pick<AppContext, 'sources' | 'content' | 'emit' | 'ownNames'>,
  { diallers, names, checks }: SourceAccess,
): Fetcher {
  const { answers, health, statistics, places } = sources;
  const { bodyBytesMax, cacheBytesMax } = config.fetch;
  const fetch = withFailureEvents(
    createFetcher({
      ...{ diallers, health, names, checks, bodyBytesMax, statistics, places, via },
    }),
    (failure) => void emit('error.detected', failure),
  );
  const copied = config.access.flatMap(({ copy }) => copy);
  const identityFields = [...identityFieldsOf(config), ...copied];
  const parts = { fetch, answers, now, newId, via, identityFields };
  const cached = cacheBytesMax === 0 ? fetch : cachedFetch(parts);
  return withUsers(withOwnFields(withCompression(cached, compressors.responses)));
}
