import type { Authenticate } from './authenticate.ts';
import { getResolve, linkHtm } from './breadcrumbs.ts';
import { explainRequest } from './explain.ts';
import { followPlace } from './follow.ts';
import { getContent, getRender, getRule, type GetOperations } from './gets.ts';
import { insertKey, listKeys, revokeKeyById, type KeyOperations } from './keys.ts';
import { invalidateRules, type InvalidateParts } from './invalidate.ts';
import { listRules } from './list.ts';
import { operation, type Operation } from './operation.ts';
import { editRule, insertRule, readRule, type RuleOperations } from './rules.ts';
import { serverStatus, type StatusOperations } from './server-status.ts';
import { authenticateSession } from './session.ts';
import { subscribeToRules } from './subscribe.ts';

/** What each family of operations stands on. */
export interface OperationParts {
  readonly rules: RuleOperations & InvalidateParts;
  readonly gets: GetOperations;
  readonly keys: KeyOperations;
  readonly status: StatusOperations;
  readonly authenticate: Authenticate;
}

/** Every operation of Waymark, with who may call it and whether it writes (contract §5). */
export function operationTable(parts: OperationParts): readonly Operation[] {
  const { rules, gets, keys, status, authenticate } = parts;
  return [
    operation('svc1.userinterface.insert', 'design', 'writes', insertRule(rules)),
    operation('svc1.userinterface.edit', 'design', 'writes', editRule(rules)),
    operation('svc1.userinterface.read', 'read', 'reads', readRule(rules)),
    operation('svc1.userinterface.list', 'read', 'reads', listRules(rules)),
    operation('svc1.userinterface.invalidate', 'design', 'writes', invalidateRules(rules)),
    operation('svc1.userinterface.subscribe', 'read', 'streams', subscribeToRules(rules)),
    operation('svc1.userinterface.explain', 'read', 'reads', explainRequest(gets)),
    operation('svc1.userinterface.get', 'render', 'reads', getRule(gets)),
    operation('svc1.userinterface.get_render', 'render', 'reads', getRender(gets)),
    operation('svc1.userinterface.get_content', 'render', 'reads', getContent(gets)),
    operation('svc1.userinterface.get_resolve', 'render', 'reads', getResolve(gets)),
    operation('svc1.userinterface.follow', 'render', 'streams', followPlace(rules)),
    operation('svc1.userinterface.link.htm', 'render', 'reads', linkHtm(gets)),
    operation('svc1.key.insert', 'admin', 'writes', insertKey(keys)),
    operation('svc1.key.list', 'admin', 'reads', listKeys(keys)),
    operation('svc1.key.revoke', 'admin', 'writes', revokeKeyById(keys)),
    operation('svc1.server.status', 'read', 'reads', serverStatus(status)),
    operation('svc1.session.authenticate', undefined, 'writes', authenticateSession(authenticate)),
  ];
}
