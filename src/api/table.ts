import type { Authenticate } from './keys/authenticate.ts';
import { getResolve, linkHtm } from './rules/breadcrumbs.ts';
import { keptStatus, listKept, purgeKept, type CacheOperations } from './cache.ts';
import { listDeliveries } from './webhooks/deliveries.ts';
import { listEvents, readEvent } from './webhooks/event-reads.ts';
import { listEventTypes } from './webhooks/event-types.ts';
import { insertEvent, testHook, type EventOperations } from './webhooks/events.ts';
import { explainRequest } from './rules/explain.ts';
import { followPlace } from './rules/follow.ts';
import { getContent, getRender, getRule, type GetOperations } from './rules/gets.ts';
import { listHooks } from './webhooks/hook-list.ts';
import { rotateSecret } from './webhooks/hook-secret.ts';
import {
  editHook,
  insertHook,
  readHook,
  switchHook,
  type HookOperations,
} from './webhooks/hooks.ts';
import { insertKey, listKeys, revokeKeyById, type KeyOperations } from './keys/keys.ts';
import { invalidateRecords, type InvalidateParts } from './records/invalidate.ts';
import { listRules } from './rules/list.ts';
import { operation, type Operation } from './operation.ts';
import { replayDeliveries } from './webhooks/replay.ts';
import { editRule, insertRule, readRule, type RuleOperations } from './rules/rules.ts';
import { serverStatus, type StatusOperations } from './server-status.ts';
import { authenticateSession } from './keys/session.ts';
import { subscribeToRules } from './rules/subscribe.ts';
import { importLines, type ImportOperation } from './transfer/import-operation.ts';

/** What each family of operations stands on. */
export interface OperationParts {
  readonly rules: RuleOperations & InvalidateParts;
  readonly imports: ImportOperation;
  readonly gets: GetOperations;
  readonly hooks: HookOperations & InvalidateParts;
  readonly events: EventOperations;
  readonly cache: CacheOperations;
  readonly keys: KeyOperations;
  readonly status: StatusOperations;
  readonly authenticate: Authenticate;
}

/**
 * Every operation of Waymark, with who may call it and whether it writes
 * (docs/design/operations.md#one-definition).
 */
export function operationTable(parts: OperationParts): readonly Operation[] {
  const { rules, imports, gets, hooks, events, cache, keys, status, authenticate } = parts;
  return [
    operation('svc1.userinterface.insert', 'design', 'writes', insertRule(rules)),
    operation('svc1.userinterface.edit', 'design', 'writes', editRule(rules)),
    operation('svc1.userinterface.read', 'read', 'reads', readRule(rules)),
    operation('svc1.userinterface.list', 'read', 'reads', listRules(rules)),
    operation(
      'svc1.userinterface.invalidate',
      'design',
      'writes',
      invalidateRecords('userinterface', rules),
    ),
    operation('svc1.userinterface.import', 'design', 'writes', importLines(imports)),
    operation('svc1.userinterface.subscribe', 'read', 'streams', subscribeToRules(rules)),
    operation('svc1.userinterface.explain', 'read', 'reads', explainRequest(gets)),
    operation('svc1.userinterface.get', 'render', 'reads', getRule(gets)),
    operation('svc1.userinterface.get_render', 'render', 'reads', getRender(gets)),
    operation('svc1.userinterface.get_content', 'render', 'reads', getContent(gets)),
    operation('svc1.userinterface.get_resolve', 'render', 'reads', getResolve(gets)),
    operation('svc1.userinterface.follow', 'render', 'streams', followPlace(rules)),
    operation('svc1.userinterface.link.htm', 'render', 'reads', linkHtm(gets)),
    operation('svc1.webhook.insert', 'webhook', 'writes', insertHook(hooks)),
    operation('svc1.webhook.edit', 'webhook', 'writes', editHook(hooks)),
    operation('svc1.webhook.read', 'webhook', 'reads', readHook(hooks)),
    operation('svc1.webhook.list', 'webhook', 'reads', listHooks(hooks)),
    operation('svc1.webhook.invalidate', 'webhook', 'writes', invalidateRecords('webhook', hooks)),
    operation('svc1.webhook.rotate', 'webhook', 'writes', rotateSecret(hooks)),
    operation('svc1.webhook.pause', 'webhook', 'writes', switchHook(hooks, { active: false })),
    operation('svc1.webhook.resume', 'webhook', 'writes', switchHook(hooks, { active: true })),
    operation('svc1.webhook.test', 'webhook', 'writes', testHook(events)),
    operation('svc1.webhook.replay', 'webhook', 'writes', replayDeliveries(hooks)),
    operation('svc1.webhook.deliveries', 'webhook', 'reads', listDeliveries(hooks)),
    operation('svc1.event.insert', 'event', 'writes', insertEvent(events)),
    operation('svc1.event.read', 'verify', 'reads', readEvent(events)),
    operation('svc1.event.list', 'verify', 'reads', listEvents(events)),
    operation('svc1.event.types', 'verify', 'reads', listEventTypes()),
    operation('svc1.cache.purge', 'design', 'writes', purgeKept(cache)),
    operation('svc1.cache.list', 'read', 'reads', listKept(cache)),
    operation('svc1.cache.status', 'read', 'reads', keptStatus(cache)),
    operation('svc1.key.insert', 'admin', 'writes', insertKey(keys)),
    operation('svc1.key.list', 'admin', 'reads', listKeys(keys)),
    operation('svc1.key.revoke', 'admin', 'writes', revokeKeyById(keys)),
    operation('svc1.server.status', 'read', 'reads', serverStatus(status)),
    operation('svc1.session.authenticate', undefined, 'writes', authenticateSession(authenticate)),
  ];
}
