import { originsOf } from '../rule.ts';
import { originAt } from '../../../core/values/network/origin-pattern.ts';
import type { Reads } from '../../../core/log/store.ts';
import type { Call } from '../../../core/operations/operation.ts';
import type { Problem } from '../../../core/values/failure.ts';
import { type Json, isJsonObject } from '../../../core/values/json/json.ts';
import { nearestName } from '../../../core/values/nearest.ts';
import { branchOutcomes } from '../../breadcrumbs/branches.ts';
import { breadcrumbOf, redirectStatuses } from '../../breadcrumbs/breadcrumb.ts';
import { breadcrumbStart } from '../../breadcrumbs/resolve.ts';
import type { StoredRule } from '../rule.ts';
import { rulesAtTime } from '../valid-rules.ts';
import type { ViewConfig } from './rule-view.ts';
import { storedRules } from '../log/family.ts';
import { storedTables } from '../../tables/log/family.ts';

/** The parts by which effectProblems finds what a rule leads to. */
interface EffectParts {
  readonly store: Pick<Reads, 'of'>;
  readonly view: Pick<ViewConfig, 'schemaOf'>;
}

/** The problems of valid fields of a page rule that have no effect, as the site is now. */
export function effectProblems(
  parts: EffectParts,
  stored: StoredRule,
  call: Pick<Call, 'origin' | 'fields' | 'visitor' | 'caller'>,
): readonly Problem[] {
  const { rule } = stored;
  if (rule.kind !== 'resolve') return [...engineProblems(rule), ...tableProblems(rule, parts)];
  // A bound key must not learn which keys exist outside of its bounds.
  const isBound = call.caller.bounds !== undefined;
  return [...statusProblems(rule), ...(isBound ? [] : keyProblems(parts, stored, call))];
}

/** A redirect has a status of redirects: another one is not sent. */
function statusProblems({ enginedata = {}, httpresponse }: StoredRule['rule']): readonly Problem[] {
  const { target, status, html, when } = enginedata;
  const branches = Array.isArray(when) ? (when as readonly Json[]).filter(isJsonObject) : [];
  const problems = branches.flatMap((branch, at) =>
    unsentStatus(`enginedata.when[${at}].status`, branch.target, branch.status),
  );
  problems.push(...unsentStatus('enginedata.status', target, status));
  // The status of the rule is that of branches without one of their own, too.
  const isUsed = [{ target, html, status }, ...branches].some(
    (one) => one.target === undefined && one.status === undefined,
  );
  if (status !== undefined || isUsed) return problems;
  return [...problems, ...unsentStatus('httpresponse', target, httpresponse)];
}

function unsentStatus(
  field: string,
  target: Json | undefined,
  status: Json | undefined,
): readonly Problem[] {
  if (typeof target !== 'string' || typeof status !== 'number') return [];
  const isKey = target.startsWith('key:');
  if (!isKey && redirectStatuses.has(status)) return [];
  const why = isKey
    ? 'the breadcrumb of the other key decides about its status'
    : `a redirect has one of ${[...redirectStatuses].join(', ')}, and gets 302`;
  return [{ field, reason: 'no_effect', message: `${field} has no effect with a target: ${why}.` }];
}

/** Answers of the branches of a rule that a write looks at, over the keys that they lead to. */
export const outcomesExaminedMax = 100;

/** The targets that lead to no breadcrumb, or in a circle. */
function keyProblems(
  { store }: EffectParts,
  stored: StoredRule,
  { origin: asked, fields, visitor }: Pick<Call, 'origin' | 'fields' | 'visitor'>,
): readonly Problem[] {
  const { when, otherwise } = breadcrumbOf(stored);
  const leading = [...when, otherwise].flatMap(({ name, answer }) =>
    answer.kind === 'key' ? [{ name, key: answer.key }] : [],
  );
  if (leading.length === 0) return [];
  // Many branches may lead to one rule, of a megabyte, which a draft reads anew each time.
  const known = new Map<string, StoredRule | undefined>();
  const ruleOf = ({ id }: { readonly id: string }): StoredRule | undefined => {
    if (!known.has(id)) known.set(id, store.of(storedRules).rule(id));
    return known.get(id);
  };
  const rules = rulesAtTime({ anyTime: store.of(storedRules), ruleOf }, visitor.nowMs);
  const origin = originAt(originsOf(stored.rule.origin), asked);
  const visit = { origin, path: stored.rule.path, query: '', fields, visitor };
  const start = { stored, capture: undefined };
  const outcomes = branchOutcomes(rules, start, visit, outcomesExaminedMax);
  return leading.flatMap(({ name, key }): readonly Problem[] => {
    const own = outcomes.filter(
      (one) => one.name === name || one.name.startsWith(`${name} → key `),
    );
    const failures = own.flatMap(({ failure }) => failure ?? []);
    if (failures.length === 0) return [];
    // A visitor for whom the branch holds meets it again.
    const isItself = breadcrumbStart(rules, key, visit)?.stored.rule.id === stored.rule.id;
    if (!isItself && failures.length < own.length) return [];
    const field = `enginedata.${name === 'default' ? '' : `${name}.`}target`;
    const message = `${field} has no effect now: ${failures[0] ?? ''}`;
    return [{ field, reason: 'no_effect', message }];
  });
}

/** An engine of a page that has a body of its own; the form of a record page is its default. */
function engineProblems({ kind, engine, content, asset }: StoredRule['rule']): readonly Problem[] {
  const body = content === undefined ? 'asset' : 'content';
  if (kind !== 'content' || engine === undefined || (content ?? asset) === undefined) return [];
  const message =
    `engine has no effect on what visitors get, which is the ${body}; only get_render names it. ` +
    'Remove one of the two.';
  return [{ field: 'engine', reason: 'no_effect', message }];
}

/** A table that is missing or that nobody knows, unless the record goes to another host. */
function tableProblems(
  { kind, table, engine, enginedata, _unknowns_: unknowns }: StoredRule['rule'],
  { store, view }: EffectParts,
): readonly Problem[] {
  const isElsewhere = [enginedata, unknowns?.enginedata].some(
    (data) => isJsonObject(data) && data.submit !== undefined,
  );
  if (!kind.endsWith('-record') || isElsewhere) return [];
  if (table === undefined) {
    // Pages of other engines may need no table.
    if (engine !== 'form' || unknowns?.table !== undefined) return [];
    const message = 'table is missing: the page has no form. Name the table of its record.';
    return [{ field: 'table', reason: 'no_effect', message }];
  }
  if (view.schemaOf(table) !== undefined) return [];
  const known = [...store.of(storedTables).tablesAfter('')].map((one) => one.table.name);
  // The schema of a data host may still be on its way.
  if (known.includes(table)) return [];
  const suggestion = nearestName(table, known);
  const advice =
    suggestion === undefined ? 'Add it as a table, or name one.' : `Did you mean ${suggestion}?`;
  const message = `There is no table ${table}: the page has no form. ${advice}`;
  const hint = suggestion !== undefined && { suggestion };
  return [{ field: 'table', reason: 'no_effect', message, ...hint }];
}
