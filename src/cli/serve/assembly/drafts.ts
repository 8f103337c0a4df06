import { SharedCache } from '../../../core/fair/shared-cache.ts';
import { createAssetReader } from '../../../modules/assets/asset.ts';
import type { Authenticate } from '../../../core/operations/keys/authenticate.ts';
import { openDraftSeen } from '../../../modules/drafts/bounds.ts';
import type { Execute } from '../../../core/operations/execute.ts';
import {
  type Operation,
  type OperationDefinition,
  bindOperations,
} from '../../../core/operations/operation.ts';
import {
  createPageRows,
  createPastRows,
  createRowsFor,
} from '../../../modules/rendering/page-rows.ts';
import type { OperationParts } from '../../../modules.ts';
import { createPreviewTrust } from '../../../modules/drafts/preview-trust.ts';
import { previewedDraft } from '../../../modules/drafts/operations/previews.ts';
import type { SiteAccess } from '../../../modules/rules/site-access.ts';
import type { SiteDraft } from '../../../modules/drafts/draft.ts';
import { now } from '../../../core/values/clock.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { Caller } from '../../../core/values/key.ts';
import type { RenderedPages } from '../../../modules/rendering/rendered-pages.ts';
import { createRuleCache, ruleStoreOf } from '../../../modules/rules/rule-cache.ts';
import { createSite, type SiteParts } from './site.ts';
import { draftStore } from '../../../modules/drafts/log/draft-store.ts';
import type { Store } from '../../../core/log/store.ts';
import type { ClientAddress } from '../../../core/values/network/peer.ts';
import { storedTables } from '../../../modules/tables/log/family.ts';

/** The site and the operations of drafts (docs/design/drafts.md). */
export interface Drafts {
  /**
   * An operation of an open draft that a caller sees, by its name or id. Throws `not_found` or
   * `conflict`.
   */
  operation(draft: string, name: string, caller: Caller): Operation;
  /** The previews of open drafts. */
  readonly previews: {
    find(token: string, nowMs: number): PreviewedSite | undefined;
  };
  /** The site as an open draft has it, and the rows that its pages show in previews. */
  site(draft: SiteDraft): Pick<OperationParts, 'site' | 'rowsFor'>;
}

/** An open draft with its site: see DraftSite. */
interface PreviewedSite {
  readonly draft: SiteDraft;
  readonly site: SiteAccess;
  readonly endMs: number;
  readonly isTrusted: boolean;
}

/** The dependencies of drafts under one configuration. */
export interface DraftsParts {
  readonly store: Store;
  readonly authenticate: Authenticate;
  /** Runs operations, as those of the live state are run. */
  readonly executeOf: (operations: readonly Operation[]) => Execute;
  /** The parts of the live operations. */
  readonly parts: () => OperationParts;
  /** The parts of the live site, without caches that a draft could fill. */
  readonly site: SiteParts;
  readonly rendered: () => RenderedPages;
  /** The operations of all modules. */
  readonly definitions: readonly OperationDefinition<OperationParts>[];
  readonly withHosts: (bound: readonly Operation[], parts: OperationParts) => readonly Operation[];
}

interface DraftInstance {
  readonly shown: Pick<OperationParts, 'site' | 'rowsFor'>;
  /** Makes it see all changes up to now. */
  readonly refresh: () => void;
  readonly operations: ReadonlyMap<string, Operation>;
}

/**
 * Drafts whose operations and caches are in memory: each has caches of rules and pages. Those who
 * made the drafts share them.
 */
const instancesMax = 4;

/**
 * Makes the operations of drafts: those of the live state, with a store that has the draft on top,
 * and the site that follows from it.
 */
export function composeDrafts(given: DraftsParts): Drafts {
  const { store } = given;
  const instances = new SharedCache<DraftInstance>(instancesMax);
  const instanceOf = (draft: SiteDraft): DraftInstance => {
    const { id, by: owner } = draft;
    const instance = instances.get(id) ?? createInstance(given, draft);
    instances.set(id, { owner, value: instance });
    instance.refresh();
    return instance;
  };
  const isTrusted = createPreviewTrust(store);
  return {
    operation(name, operation, caller) {
      const draft = openDraftSeen({ store, reads: store }, name, caller);
      const { operations } = instanceOf(draft);
      const found = operations.get(operation);
      if (found === undefined) throw new TypeError(`${operation} is not possible in a draft`);
      return found;
    },
    previews: {
      find(token, nowMs) {
        const found = previewedDraft(store, token, nowMs);
        if (found === undefined) return undefined;
        const { site } = instanceOf(found.draft).shown;
        return { ...found, site, isTrusted: isTrusted(found.draft, nowMs) };
      },
    },
    site: (draft) => instanceOf(draft).shown,
  };
}

function createInstance(given: DraftsParts, draft: SiteDraft): DraftInstance {
  const { store: live, authenticate, parts, site: siteParts, rendered } = given;
  const store = draftStore(live, draft);
  const anonymous = (address: ClientAddress) => authenticate({ apikey: undefined, address });
  // The rows of a page come from its draft, too.
  const rowParts = { store, execute: () => execute, anonymous };
  const rules = createRuleCache(ruleStoreOf(store), now);
  const site = createSite({
    ...siteParts,
    rules,
    assets: createAssetReader(store.of(storedTables)),
    pageRows: createPageRows(rowParts),
    rendered: rendered(),
  });
  const { revertInThread, importInThread, batchInThread, ...others } = parts();
  const ofDraft: OperationParts = {
    ...others,
    store,
    site,
    // Who looks at a draft is no visitor.
    countVisit: () => undefined,
    rowsFor: createRowsFor(rowParts),
    pastRows: (moment) => createPastRows(rowParts, moment),
    revertInThread: (request) => revertInThread({ ...request, draft: draft.id }),
    importInThread: (request) => importInThread({ ...request, draft: draft.id }),
    batchInThread: (request) => batchInThread({ ...request, draft: draft.id }),
  };
  const inDrafts = given.definitions.filter((one) => one.inDrafts === true);
  const bound = given.withHosts(bindOperations(inDrafts, ofDraft), ofDraft);
  const operations = bound.map((one) => refuseHosted(one, store));
  const execute = given.executeOf(operations);
  return {
    shown: ofDraft,
    refresh: () => {
      rules.refresh();
    },
    operations: new Map(operations.map((one) => [one.name, one])),
  };
}

/** Throws `invalid` for a write of rows that another server has: they are in no draft. */
function refuseHosted(operation: Operation, store: Store): Operation {
  const isWrite = operation.name.startsWith('svc1.record.') && operation.effect === 'writes';
  if (!isWrite) return operation;
  return {
    ...operation,
    run(v, call) {
      const { table } = v as { readonly table?: unknown };
      const host =
        typeof table === 'string' ? store.of(storedTables).table(table)?.table.host : undefined;
      if (host === undefined) return operation.run(v, call);
      const message = `Another server has the rows of ${String(table)}: they are in no draft.`;
      throw new Failure('invalid', message, { field: 'table' });
    },
  };
}
