import type { Databases } from '../../../core/log/databases.ts';
import { keyOf, storedJson } from '../../../core/log/encoding.ts';
import type { Reads } from '../../../core/log/store.ts';
import { foldRows } from '../../../core/log/write/fold.ts';
import { storedTables } from '../../tables/log/family.ts';
import { type StoredRule, foldRule } from '../rule.ts';
import { createPastRules } from './past-rules.ts';
import { rulesByPath } from './path-order.ts';
import { createTreeReads } from './path-tree.ts';
import type { RuleReads, RuleStep } from './reads.ts';
import { createRuleAccessReads } from './rule-access.ts';
import {
  findExact,
  findWildcards,
  hasSegmentWildcards,
  hasWildcardOrigins,
  roomFailure,
} from './rule-index.ts';
import { createRuleAssetReads, createRuleTimeReads } from './rule-lookups.ts';

/** Reads the projections of page rules, and their past states from the rows of the log. */
export function createRuleReads(databases: Databases, reads: Reads): RuleReads {
  const rule = (id: string): StoredRule | undefined => {
    const text = databases.rule.get(keyOf(id));
    return text === undefined ? undefined : (storedJson(text) as StoredRule);
  };
  const ruleAt = (id: string, seq: number): StoredRule | undefined => {
    const current = rule(id);
    if (current !== undefined && current.seq <= seq) return current;
    return foldRows(reads.rows('userinterface', id, seq), foldRule).stored;
  };
  return {
    rule,
    ruleAt,
    rowByKey: (table, value) => reads.of(storedTables).rowByKey(table, value),
    recordsAfter: (after) => recordsAfter(databases, after),
    recordsBefore: (before) => recordsBefore(databases, before),
    rulesByPath: (range) => rulesByPath(databases, range),
    at: (seq) => createPastRules(databases, { ruleAt, reads }, seq),
    exactRules: (origin, path) => findExact(databases, origin, path),
    wildcardRules: (origin, path, known) => findWildcards(databases, { origin, path }, known),
    hasSegmentWildcards: () => hasSegmentWildcards(databases),
    hasWildcardOrigins: () => hasWildcardOrigins(databases),
    ...createTreeReads(databases),
    ...createRuleTimeReads(databases),
    ...createRuleAssetReads(databases),
    ...createRuleAccessReads(databases),
    roomFailure: (place, planned) => roomFailure(databases, place, planned),
  };
}

function* recordsAfter({ rule }: Databases, after: string): Iterable<RuleStep> {
  const start = after === '' ? undefined : Buffer.concat([keyOf(after), Buffer.from([0])]);
  yield* ruleSteps(rule.getRange(start === undefined ? {} : { start }));
}

function* recordsBefore({ rule }: Databases, before: string): Iterable<RuleStep> {
  const start = before === '' ? {} : { start: keyOf(before), exclusiveStart: true };
  yield* ruleSteps(rule.getRange({ ...start, reverse: true }));
}

function* ruleSteps(entries: Iterable<{ readonly value: string }>): Iterable<RuleStep> {
  for (const { value } of entries) {
    const stored = storedJson(value) as StoredRule;
    yield { id: stored.rule.id, stored, size: value.length };
  }
}
