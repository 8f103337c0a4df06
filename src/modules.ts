import type { OperationDefinition } from './core/operations/operation.ts';
import type { RecordFamily, RecordFields } from './core/operations/records/family.ts';
import {
  editOperation,
  insertOperation,
  recordOperations,
} from './core/operations/records/write.ts';
import { invalidateAsset, listAssets, readAsset } from './modules/assets/operations/assets.ts';
import { batch } from './modules/batch/batch.ts';
import { batchNames } from './modules/batch/run-batch.ts';
import { getResolve, linkHtm } from './modules/breadcrumbs/get-resolve.ts';
import { listTokens, mintToken, revokeToken } from './modules/breadcrumbs/tokens.ts';
import { breadcrumbVisits } from './modules/breadcrumbs/visits.ts';
import { cacheStatus, listCache, purgeCache } from './modules/cache/operations.ts';
import { compareDraft } from './modules/compare/compare.ts';
import { endLogin, listLogins, openConsole } from './modules/console/sessions/logins.ts';
import {
  authenticateSession,
  endSession,
  insertSession,
  listSessions,
  readSession,
  unsubscribeSession,
} from './modules/console/sessions/sessions.ts';
import { listDraftChanges } from './modules/drafts/operations/changes.ts';
import {
  approveDraft,
  commentDraft,
  editDraft,
  insertDraft,
  invalidateDraft,
  listDrafts,
  readDraft,
  submitDraft,
  unscheduleDraft,
} from './modules/drafts/operations/drafts.ts';
import { previewDraft, revokePreview } from './modules/drafts/operations/previews.ts';
import { publishDraft } from './modules/drafts/operations/publish.ts';
import { undoDraft } from './modules/drafts/operations/undo.ts';
import {
  editKeyById,
  insertKey,
  listKeys,
  readKeyById,
  revokeKeyById,
} from './modules/keys/keys.ts';
import { readNodeSecrets } from './modules/nodes/operations/access.ts';
import { insertFromNode } from './modules/nodes/operations/insert.ts';
import { followLog, readLogEnd, readLogRows } from './modules/nodes/operations/log.ts';
import { discardEntry, listOutbox, retryEntry } from './modules/nodes/operations/outbox.ts';
import { listNodes, reportNode } from './modules/nodes/operations/reports.ts';
import { listSources } from './modules/proxy/sources.ts';
import { getRender } from './modules/rendering/get-render.ts';
import { explainRequest } from './modules/rules/operations/explain.ts';
import { followPlace } from './modules/rules/operations/follow.ts';
import { getContent } from './modules/rules/operations/get-content.ts';
import { getRule } from './modules/rules/operations/get.ts';
import { type RuleParts, ruleFamily } from './modules/rules/operations/rule-family.ts';
import { subscribeToRules } from './modules/rules/operations/subscribe.ts';
import { listTimes } from './modules/rules/operations/times.ts';
import { ruleTree } from './modules/rules/operations/tree.ts';
import { replaceInRules } from './modules/rules/replace/replace.ts';
import { invalidateChanges } from './modules/changes/invalidate-changes.ts';
import { listChanges } from './modules/changes/list-changes.ts';
import { followAccess } from './modules/status/live-access-operation.ts';
import { metricsSeries } from './modules/status/metrics-series.ts';
import { serverConfiguration } from './modules/status/server-configuration.ts';
import { serverStatus } from './modules/status/server-status.ts';
import { subscribeToState } from './modules/status/server-subscribe.ts';
import { countTables } from './modules/tables/operations/counts.ts';
import { type TableParts, tableFamily } from './modules/tables/operations/table-family.ts';
import { checkRow } from './modules/tables/rows/check.ts';
import { type RowParts, rowFamily } from './modules/tables/rows/row-family.ts';
import { getRow, getTableSchema } from './modules/tables/rows/row-reads.ts';
import { subscribeToRows } from './modules/tables/rows/subscribe.ts';
import { importLines } from './modules/transfer/import-operation.ts';
import { visitSummary } from './modules/visits/visit-summary.ts';
import { listDeliveries } from './modules/webhooks/operations/deliveries.ts';
import { readDelivery } from './modules/webhooks/operations/delivery.ts';
import { listEvents, readEvent } from './modules/webhooks/operations/event-reads.ts';
import { listEventTypes } from './modules/webhooks/operations/event-types.ts';
import { type EventParts, insertEvent, testHook } from './modules/webhooks/operations/events.ts';
import { listHealth } from './modules/webhooks/operations/health.ts';
import { type HookParts, hookFamily } from './modules/webhooks/operations/hook-family.ts';
import { pauseHook, resumeHook } from './modules/webhooks/operations/pause.ts';
import { replayDeliveries } from './modules/webhooks/operations/replay.ts';
import { rotateSecret } from './modules/webhooks/operations/rotate.ts';

/** The parts that all record families together need. */
type FamilyParts = RuleParts & HookParts & TableParts & RowParts;

/** The record families; each has the operations of `recordOperations`. */
export const recordFamilies: readonly RecordFamily<FamilyParts, RecordFields>[] = [
  ruleFamily,
  hookFamily,
  tableFamily,
  rowFamily,
];

/** The operations that a batch can have. */
export const batched: readonly OperationDefinition<FamilyParts & EventParts>[] = [
  ...recordFamilies.flatMap((family) => [insertOperation(family), editOperation(family)]),
  insertEvent,
].filter(({ name }) => batchNames.some((one) => one === name));

/** All other operations. */
const others = [
  batch,
  importLines,
  subscribeToRules,
  countTables,
  checkRow,
  getRow,
  getTableSchema,
  subscribeToRows,
  explainRequest,
  getRule,
  getRender,
  getContent,
  getResolve,
  followPlace,
  linkHtm,
  rotateSecret,
  pauseHook,
  resumeHook,
  testHook,
  replayDeliveries,
  listDeliveries,
  readDelivery,
  listHealth,
  insertEvent,
  readEvent,
  listEvents,
  listEventTypes,
  purgeCache,
  listCache,
  cacheStatus,
  insertKey,
  editKeyById,
  readKeyById,
  listKeys,
  revokeKeyById,
  serverStatus,
  serverConfiguration,
  subscribeToState,
  listSources,
  authenticateSession,
  unsubscribeSession,
  insertSession,
  readSession,
  listSessions,
  endSession,
  listLogins,
  endLogin,
  openConsole,
  metricsSeries,
  breadcrumbVisits,
  mintToken,
  listTokens,
  revokeToken,
  visitSummary,
  listChanges,
  invalidateChanges,
  ruleTree,
  listTimes,
  replaceInRules,
  insertDraft,
  editDraft,
  readDraft,
  listDrafts,
  invalidateDraft,
  commentDraft,
  submitDraft,
  approveDraft,
  previewDraft,
  revokePreview,
  listDraftChanges,
  compareDraft,
  publishDraft,
  undoDraft,
  unscheduleDraft,
  listAssets,
  readAsset,
  invalidateAsset,
  readLogEnd,
  readLogRows,
  followLog,
  followAccess,
  reportNode,
  listNodes,
  readNodeSecrets,
  insertFromNode,
  listOutbox,
  retryEntry,
  discardEntry,
];

/** The parts that all operations together need. */
export type OperationParts = FamilyParts & PartsOf<(typeof others)[number]>;

type PartsOf<Definition> = (
  Definition extends OperationDefinition<infer Parts> ? (parts: Parts) => void : never
) extends (parts: infer All) => void
  ? All
  : never;

/** Every operation of Waymark (docs/design/operations.md#one-definition). */
export const operations: readonly OperationDefinition<OperationParts>[] = [
  ...recordFamilies.flatMap(recordOperations),
  ...others,
];
