import { createRates } from '../../../modules/rates/rates.ts';
import { createExecute } from '../../../core/operations/execute.ts';
import { requireUnrevoked } from '../../../core/operations/keys/authenticate.ts';
import type { Config } from '../../../core/config/config.ts';
import { createHostClient, type HostClient } from '../../../modules/hosts/host-client.ts';
import { now } from '../../../core/values/clock.ts';
import type { CacheUse } from '../../../core/report/memory-use.ts';
import { createConnector, createDialler, type Dialler } from '../../../core/outbound/dialler.ts';
import { createDocuments } from '../../../modules/docs/documents.ts';
import { createPublicAnswers } from '../../../core/operations/http/public-answers.ts';
import type { Serving } from '../../../core/pipeline/serving.ts';
import { createSite } from '../../../core/pipeline/site.ts';
import { createDisk, privatePathsOf } from '../../../modules/files/disk.ts';
import { createAttempt, type DeliveryAttempt } from '../../../modules/webhooks/attempt.ts';
import { composeAuthenticate, composeSessions, composeVisitors } from './callers.ts';
import {
  composeSite,
  composeIndexPages,
  composeUploads,
  composeFieldsAndLines,
} from './content.ts';
import type { AppContext } from './context.ts';
import { composeDrafts } from './drafts.ts';
import {
  composeParts,
  composeOperations,
  composeRows,
  composeDraftParts,
  executeParts,
} from './operations.ts';
import { composeTracing } from './telemetry.ts';
import { composeSourceAccess } from './transport.ts';

/** Everything that depends on one configuration; a reload replaces and closes it. */
export interface AppInstance {
  readonly serving: Serving;
  /** Makes one attempt at a delivery. */
  readonly attempt: DeliveryAttempt;
  /** Calls the data hosts of tables. */
  readonly hosts: HostClient;
  /** The memory of its caches. */
  memory(): readonly CacheUse[];
  /** Waits until running requests have ended, then closes everything. */
  close(): Promise<void>;
  /** Aborts requests to other servers when no client waits for their responses any more. */
  cut(): void;
}

/** Creates the immutable instance that answers requests with a configuration. */
export function compose(config: Config, context: AppContext): AppInstance {
  const { store, version, callers, content } = context;
  const { publicFiles, ownFiles, consoleFiles, rules, compressors } = content;
  const { base, publicUrl } = config.server;
  const disk = createDisk({ ...filesOf(config), compressors, now });
  const tracing = composeTracing(config, context);
  const access = composeSourceAccess(config, context.sources, tracing.dialler);
  const { dialler, diallers, checks } = access;
  const hosts = createHostClient({ dialler, connect: createConnector(config.fetch) });
  const { login, visitors } = composeVisitors(config, context, diallers);
  const sessions = composeSessions(config, store);
  const authenticate = composeAuthenticate(config, callers, sessions);
  const { pageRows, ...readers } = composeRows(store, authenticate, () => execute);
  const rates = createRates(config.rates, callers.rates);
  const siteParts = composeSite(config, context, { disk, ...access, pageRows, rates, login });
  const site = createSite({ ...siteParts, countVisit: callers.visits.count });
  // A page that an operation reads does not count as a visit.
  const reads = { site: createSite(siteParts), ...readers };
  const drafts = composeDrafts({
    ...composeDraftParts(config, context, { siteParts, access, hosts }),
    ...{ authenticate, parts: () => parts },
  });
  const given = { ...reads, authenticate, sessions, login, visitors, hosts, drafts };
  const parts = composeParts(config, context, given);
  const operations = composeOperations(config, hosts, parts);
  const parameters = {
    ...executeParts(config, store, callers),
    inDraft: (...asked: Parameters<typeof drafts.operation>) => drafts.operation(...asked),
  };
  const execute = tracing.execute(createExecute(operations, parameters));
  const hookDialler = tracing.dialler(createDialler(config.webhook));
  const publicAnswers = createPublicAnswers(ownFiles);
  return {
    serving: {
      ...{ config, site, version },
      refresh: () => {
        rules.refresh();
      },
      period: () => rules.period(),
      execute,
      ...{ authenticate, visitors, login, tracer: tracing.tracer },
      requireUnrevoked: (caller) => {
        requireUnrevoked(sessions, caller, now);
        if (caller.keyId !== undefined) callers.keyUses.note(caller.keyId);
      },
      ...{ publicFiles, ownFiles, consoleFiles },
      metricsText: context.state.metricsText,
      ...composeFieldsAndLines(config, siteParts),
      ...{ publicAnswers, indexPages: composeIndexPages(config, content) },
      ...{ previews: drafts.previews, rates, assets: composeUploads(store, content) },
      documents: createDocuments({
        ...{ operations, version, anonymous: config.auth.anonymous },
        ...{ base, publicUrl },
      }),
    },
    attempt: tracing.attempt(hookAttempt(hookDialler, version)),
    hosts,
    memory: () => [disk.memory(), publicAnswers.memory()],
    async close() {
      checks.close();
      await disk.close();
      await Promise.all([diallers.close(), hookDialler.close(), visitors.close()]);
      await tracing.close();
    },
    cut: () => {
      checks.close();
      diallers.cut();
    },
  };
}

/** What the mounts of the ini file serve, and what none of them may. */
function filesOf(
  config: Config,
): Pick<Parameters<typeof createDisk>[0], 'mounts' | 'privatePaths'> {
  return { mounts: config.disk, privatePaths: privatePathsOf(config) };
}

function hookAttempt(dialler: Dialler, version: string): DeliveryAttempt {
  return createAttempt({
    ...{ dialler, userAgent: `Waymark/${version}`, now },
    monotonicMs: () => performance.now(),
  });
}
