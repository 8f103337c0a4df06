import type { Task } from '../../../core/background/tasks.ts';
import { identityFieldsOf } from '../../../core/pipeline/incoming-request.ts';
import type { Config } from '../../../core/config/config.ts';
import { loginProviders } from '../../../modules/login/section.ts';
import type { Store } from '../../../core/log/store.ts';
import type { Offers } from '../../../core/module.ts';
import { type Execute, createExecute } from '../../../core/operations/execute.ts';
import { createPublicAnswers } from '../../../core/operations/http/public-answers.ts';
import {
  type Authenticate,
  type CallerEnds,
  callerEnd,
  createAuthenticate,
  requireUnrevoked,
} from '../../../core/operations/keys/authenticate.ts';
import { createCallerEnds } from '../../../core/operations/keys/caller-ends.ts';
import { type Dialler, createConnector, createDialler } from '../../../core/outbound/dialler.ts';
import type { Serving } from '../../../core/pipeline/serving.ts';
import { createSite } from './site.ts';
import type { CacheUse } from '../../../core/report/memory-use.ts';
import { newId, now } from '../../../core/values/clock.ts';
import { scopes } from '../../../core/values/key.ts';
import { unknownAddress } from '../../../core/values/network/peer.ts';
import { unknownVisitor } from '../../../modules/rules/operations/preview.ts';
import {
  type SessionStore,
  followerSessions,
  loggedSessions,
} from '../../../modules/console/sessions/session-store.ts';
import { createDisk, privatePathsOf } from '../../../modules/files/disk.ts';
import { type HostClient, createHostClient } from '../../../modules/hosts/host-client.ts';
import { type Login, createLogin } from '../../../modules/login/login.ts';
import type { SourceDiallers } from '../../../modules/proxy/source-diallers.ts';
import { createRates } from '../../../modules/rates/rates.ts';
import { type Visitors, createVisitors } from '../../../modules/visitors/visitor.ts';
import {
  type DeliveryAttempt,
  createAttempt,
  tracedAttempt,
} from '../../../modules/webhooks/attempt.ts';
import { composeAccessLines, composeIndexPages, composeSite, composeUploads } from './content.ts';
import type { OperationParts } from '../../../modules.ts';
import type { AppContext, CallerContext } from './context.ts';
import { type Drafts, composeDrafts } from './drafts.ts';
import {
  composeDraftParts,
  composeOperations,
  composeParts,
  composeRows,
  definitionsOf,
  executeParts,
} from './operations.ts';
import { composeHeaders, composeSteps } from './steps.ts';
import { composeSourceAccess } from './transport.ts';
import { loginSessionsPart } from '../../../modules/login/stored-sessions.ts';

/** Everything that depends on one configuration; a reload replaces and closes it. */
export interface AppInstance {
  readonly serving: Serving;
  /** Makes one attempt at a delivery. */
  readonly attempt: DeliveryAttempt;
  /** The work in the background that depends on it. */
  readonly tasks: readonly Task[];
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
  const disk = createDisk({ ...filesOf(config), compressors, now });
  const provided = context.modules.provision(config);
  const { tracing } = provided.offers;
  const traced = (given: Dialler): Dialler => tracing?.dialler(given) ?? given;
  const access = composeSourceAccess(config, context, traced);
  const { dialler, diallers, checks } = access;
  const hosts = composeHosts(config, context, dialler);
  const { login, visitors } = composeVisitors(config, context, diallers);
  const sessions = composeSessions(config, store);
  const authenticate = composeAuthenticate(config, callers, sessions);
  const { pageRows, ...readers } = composeRows(store, authenticate, () => execute);
  const rates = createRates(config.rates, callers.rates);
  const headers = composeHeaders(config);
  const previews: Serving['previews'] = { find: (...asked) => drafts.previews.find(...asked) };
  const given = { rates, authenticate, previews, headers };
  const steps = [...composeSteps(config, context, given), ...provided.steps];
  const siteParts = composeSite(config, context, { disk, ...access, pageRows, steps, login });
  const site = createSite({ ...siteParts, countVisit: callers.visits.count });
  // A page that an operation reads does not count as a visit.
  const reads = { site: createSite(siteParts), ...readers };
  const drafts = composeDrafts({
    ...composeDraftParts(config, context, { siteParts, access, hosts }),
    ...{ authenticate, parts: () => parts },
  });
  const others = { ...reads, authenticate, sessions, login, visitors, hosts, drafts };
  const parts = {
    ...composeParts(config, context, { ...others, pageHeaders: headers.change }),
    ...provided.parts,
  };
  Object.assign(provided.offers, { eventTypes: parts.eventTypes, run: runAs(() => execute) });
  const execute = composeExecute(config, context, { hosts, drafts, parts, tracing });
  const hookDialler = traced(createDialler({ ...config.webhook, via: context.ownNames.ofLog }));
  const publicAnswers = createPublicAnswers(ownFiles);
  return {
    serving: {
      ...{ config, site, version },
      refresh: () => {
        rules.refresh();
      },
      period: () => rules.period(),
      isOwnRequest: context.ownNames.isIn,
      ...{ execute, authenticate, visitors, login, tracer: tracing?.tracer },
      requireUnrevoked: composeKeyCheck(sessions, callers),
      callerEnds: composeCallerEnds(store, sessions),
      ...{ publicFiles, ownFiles, consoleFiles },
      ...{ metricsText: context.state.metricsText, paths: provided.paths },
      accessRules: composeAccessLines(config),
      ...{ publicAnswers, indexPages: composeIndexPages(config, content, provided.offers) },
      ...{ previews, rates, assets: composeUploads(store, content) },
    },
    attempt: hookAttempt(config, hookDialler, { version, tracing }),
    hosts,
    tasks: provided.tasks,
    memory: () => [disk.memory(), publicAnswers.memory()],
    async close() {
      checks.close();
      await disk.close();
      await Promise.all([diallers.close(), hookDialler.close(), visitors.close()]);
      await provided.close();
    },
    cut: () => {
      checks.close();
      diallers.cut();
    },
  };
}

/** Runs operations with all rights, for a part of the server that the history names. */
function runAs(execute: () => Execute): Offers['run'] {
  return async (author, operation, v) => {
    const caller = { scopes: new Set(scopes), keyId: author, rate: undefined };
    const outcome = await execute().run(operation, v, {
      caller: { ...caller, address: unknownAddress },
      ...{ vk: undefined, qk: undefined, origin: '', fields: {}, transport: 'http' },
      visitor: unknownVisitor(now()),
      signal: () => new AbortController().signal,
    });
    return outcome.kind === 'reply' ? undefined : outcome.data;
  };
}

/** The check that the key of a caller is still valid; its use counts. */
function composeKeyCheck(
  sessions: SessionStore,
  { keyUses }: CallerContext,
): Serving['requireUnrevoked'] {
  return (caller) => {
    requireUnrevoked(sessions, caller, now);
    if (caller.keyId !== undefined) keyUses.note(caller.keyId);
  };
}

/** What the mounts of the ini file serve, and what none of them may. */
function filesOf(
  config: Config,
): Pick<Parameters<typeof createDisk>[0], 'mounts' | 'privatePaths'> {
  return { mounts: config.disk, privatePaths: privatePathsOf(config) };
}

/** Runs the operations of all modules. */
function composeExecute(
  config: Config,
  { modules, store, callers }: AppContext,
  {
    hosts,
    drafts,
    parts,
    tracing,
  }: {
    readonly hosts: HostClient;
    readonly drafts: Drafts;
    readonly parts: OperationParts;
    readonly tracing: Offers['tracing'] | undefined;
  },
): Execute {
  const definitions = definitionsOf(modules);
  const execute = createExecute(composeOperations(config, { hosts, definitions }, parts), {
    ...executeParts(config, store, callers),
    inDraft: (...asked) => drafts.operation(...asked),
  });
  return tracing?.execute(execute) ?? execute;
}

function hookAttempt(
  config: Config,
  dialler: Dialler,
  {
    version,
    tracing,
  }: { readonly version: string; readonly tracing: Offers['tracing'] | undefined },
): DeliveryAttempt {
  const attempt = createAttempt({
    dialler,
    userAgent: `Waymark/${version}`,
    withheld: identityFieldsOf(config),
    now,
    monotonicMs: () => performance.now(),
  });
  return tracing === undefined ? attempt : tracedAttempt(attempt, tracing.tracer);
}

/** The client of the data hosts of tables. */
function composeHosts(
  { fetch }: Config,
  { ownNames }: AppContext,
  dialler: Dialler,
): ReturnType<typeof createHostClient> {
  return createHostClient({ dialler, connect: createConnector(fetch), via: ownNames.ofLog });
}

/** Identifies callers by their keys and sessions. */
function composeAuthenticate(
  { auth }: Config,
  { wrongKeys, keyUses }: CallerContext,
  keys: SessionStore,
): Authenticate {
  const { anonymous, keyRate } = auth;
  const used = (id: string): void => {
    keyUses.note(id);
  };
  return createAuthenticate({ keys, anonymous, keyRate, wrongKeys, used, now });
}

/** Tells long connections when the key or the session of their caller ends. */
function composeCallerEnds(store: Store, keys: SessionStore): CallerEnds {
  const logSeq = (): number => {
    store.refresh();
    return store.seq();
  };
  return createCallerEnds({ endOf: (caller) => callerEnd(keys, caller), logSeq, now });
}

/** The sessions of the console; those of people who have signed in by `[login]` end with it. */
function composeSessions(config: Config, store: Store): SessionStore {
  const { node } = config;
  const sessions = node.central === undefined ? loggedSessions(store) : followerSessions(store);
  return loginProviders(config).length === 0 ? { ...sessions, isLoginOpen: () => false } : sessions;
}

/** Who visitors are, and their sign-in by a provider, if there is one. */
function composeVisitors(
  config: Config,
  context: Pick<AppContext, 'store' | 'logs' | 'ownNames'>,
  diallers: SourceDiallers,
): { readonly login: Login | undefined; readonly visitors: Visitors } {
  const { log } = context.logs;
  const login = composeLogin(config, context, diallers);
  const loginUser =
    login &&
    ((cookie: string | undefined, origin: string) =>
      login.userOf(cookie, origin.startsWith('https:')));
  return {
    login,
    visitors: createVisitors({ config, loginUser, now, log, via: context.ownNames.ofNode }),
  };
}

/** The sign-in of visitors by a provider, which may be in a private network. */
function composeLogin(
  config: Config,
  { store, logs: { log } }: Pick<AppContext, 'store' | 'logs'>,
  diallers: SourceDiallers,
): Login | undefined {
  const providers = loginProviders(config);
  if (providers.length === 0) return undefined;
  return createLogin({
    ...{ providers, base: config.server.base, store: store.part(loginSessionsPart) },
    dialler: () => diallers.of({ ini: { connectTimeoutMs: undefined } }),
    ...{ newId, now, log },
  });
}
