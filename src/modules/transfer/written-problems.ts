import type { Call } from '../../core/operations/operation.ts';
import type { Problem } from '../../core/values/failure.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { type RuleParts, ruleFamily } from '../rules/operations/rule-family.ts';
import { type HookParts, hookFamily } from '../webhooks/operations/hook-family.ts';
import type { LineProblems } from './import-line.ts';
import type { ImportedRecord } from './import.ts';

/** The parts that find problems of page rules and hooks. */
export type ProblemParts = RuleParts & HookParts;

/** The call for which they are described. */
type ProblemCall = Pick<Call, 'origin' | 'fields' | 'visitor' | 'caller'>;

/**
 * The problems of an imported record as an insert would answer them: also those that depend on the
 * site with all imported lines, such as a target that leads nowhere. Fields that wait in a record
 * of an export are no mistakes of this import.
 */
export function writtenProblems(
  parts: ProblemParts,
  { family, id, isExported }: Omit<ImportedRecord, 'line'>,
  call: ProblemCall,
): readonly Problem[] {
  if (family === 'webhook') {
    const hook = hookFamily.find(parts.store, id)?.record;
    return hook === undefined || isExported
      ? []
      : hookFamily.problems(hook, namesIn(hook as unknown as JsonObject), parts);
  }
  const stored = ruleFamily.find(parts.store, id);
  if (stored === undefined) return [];
  const names = namesIn(stored.record as unknown as JsonObject);
  const own = isExported ? [] : ruleFamily.problems(stored.record, names, parts);
  const now = ruleFamily.afterWrite?.({ stored, names, call: call as Call }, parts) ?? [];
  return [...own, ...now];
}

/** The names of the fields of a record, with those that wait. */
function namesIn({ id: _id, _unknowns_: waiting, ...fields }: JsonObject): readonly string[] {
  return [...new Set([...Object.keys(fields), ...Object.keys((waiting ?? {}) as JsonObject)])];
}

/** The problems of a record that its line does not have yet. */
export function newProblems(
  known: Pick<LineProblems, 'problems'>,
  written: readonly Problem[],
): readonly Problem[] {
  const named = new Set(known.problems.map(({ field, reason }) => `${reason} ${field}`));
  return written.filter(({ field, reason }) => !named.has(`${reason} ${field}`));
}
