import { originsOf, foldRule } from '../rule.ts';
import { maskedValue, replaceFormerSecrets } from '../../../core/log/former-headers.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import { hasScope } from '../../../core/values/key.ts';
import { canonicalPath, encodeNonAscii } from '../../../core/values/path.ts';
import {
  isValidAt,
  ruleKinds,
  validityOf,
  type Rule,
  type RuleContent,
  type StoredRule,
} from '../rule.ts';
import { storedMomentMs } from '../../../core/values/time.ts';
import type { Reads } from '../../../core/log/store.ts';
import { boundedRules, boundRevert, isRuleWithin } from '../bounds/rules.ts';
import type {
  RecordFamily,
  RecordParts,
  RecordStep,
  StoredRecord,
} from '../../../core/operations/records/family.ts';
import type { RevertPlacing } from '../../../core/operations/records/revert.ts';
import { allShown, type Reader, type ShowFields } from '../../../core/operations/records/shown.ts';
import type { SiteAccess } from '../site-access.ts';
import { effectProblems } from './effects.ts';
import { unreadEnginedata } from './enginedata.ts';
import { momentCharactersMax } from '../../drafts/operations/limits.ts';
import { limitOf, parseRuleOrigin, ruleFieldsFromText } from './fields.ts';
import { placeRuleFields } from './placement.ts';
import { ruleProblems, type RuleChecks } from './rule-problems.ts';
import { ruleSchema } from './rule-schema.ts';
import { serverFields, type ViewConfig } from './rule-view.ts';
import { siteProblems } from './shadows.ts';
import { storedRules } from '../log/family.ts';
import type { RuleStep } from '../log/reads.ts';

/** The parts that the operations on page rules need. */
export interface RuleParts extends RecordParts, Pick<RuleChecks, 'engines' | 'allowPrivate'> {
  /** Names of the access sections of the ini file. */
  readonly accessNames: ReadonlySet<string>;
  readonly view: ViewConfig;
  readonly site: Pick<SiteAccess, 'explain' | 'hasFile'>;
}

const text = { type: 'string', nullable: true } as const;

/** Page rules (docs/design/page-rules.md#fields). */
export const ruleFamily: RecordFamily<RuleParts, Rule> = {
  name: 'userinterface',
  noun: 'page rule',
  command: 'rule',
  scopes: { read: 'read', write: 'design' },
  schema: ruleSchema,

  forCall(given, _reads, _parts, earlier) {
    const { bounds } = given.call.caller;
    if (bounds === undefined) return ruleFamily;
    return earlier ?? boundedRules(ruleFamily, given, bounds);
  },
  isWithin: isRuleWithin,
  boundRevert,

  find: (reads, id) => recordOf(reads.of(storedRules).rule(id)),
  findAt: (reads, id, seq) => recordOf(reads.of(storedRules).ruleAt(id, seq)),
  after: (reads, id) => steps(reads.of(storedRules).recordsAfter(id)),
  afterAt: (reads, id, seq) => steps(reads.of(storedRules).at(seq).recordsAfter(id)),
  fold: (before, change) => placed(foldRule(before && ruleOf(before), change)),

  place(write, { engines, accessNames }) {
    return placeRuleFields(write, { engines, accessNames });
  },
  placeAgain(_reads, record, placing) {
    if (placing === undefined) return {};
    const checks = {
      engines: new Set(placing.engines),
      accessNames: new Set(placing.accessNames),
    };
    return placeRuleFields({ current: record as unknown as Rule, sent: {} }, checks);
  },
  placing: rulePlacing,
  fromText: ruleFieldsFromText,
  problems: (rule, names, { engines, accessNames, allowPrivate, view }) =>
    ruleProblems(rule, names, { engines, accessNames, allowPrivate, base: view.base }),
  unknownMembers: ({ enginedata, kind, _unknowns_: unknowns = {} }, names) =>
    enginedata !== undefined && names.includes('enginedata') && unknowns.enginedata === undefined
      ? unreadEnginedata(enginedata, kind)
      : [],
  afterWrite: ({ stored, call }, parts) => [
    ...effectProblems(parts, ruleOf(stored), call),
    ...siteProblems(parts, stored.record, call),
  ],

  serverFields: (rule, { view }, origin) => serverFields(rule, view, origin),
  shown: withoutFormerHeaders,

  list: {
    filters: {
      origin: { ...text, description: 'The origin, such as https://example.com, or *.' },
      path: { ...text, description: 'The start of the path, or of the key.' },
      kind: { ...text, enum: [...ruleKinds, null], description: 'The kind of page rule.' },
      table: { ...text, description: 'The table.' },
      engine: { ...text, description: 'The engine.' },
      valid_at: {
        ...text,
        maxLength: momentCharactersMax,
        description: 'A moment, written as in from and until: the rules that answer then.',
      },
    },
    orders: {
      '-inserted': (reads, { after }) => steps(reads.of(storedRules).recordsBefore(after)),
      path: (reads, given) => pathSteps(reads, given, false),
      '-path': (reads, given) => pathSteps(reads, given, true),
    },
    ordersMean:
      'The order: inserted (oldest first, the default), -inserted, path (by origin and path; ' +
      'rules whose origin waits, and paths over 1,900 bytes, come first) or -path.',
    parse: parseFilters,
    matches: (rule, { origin, path = '', kind, table, engine, valid_at: at }) =>
      (origin === undefined || originsOf(rule.origin).includes(origin as string)) &&
      rule.path.startsWith(path as string) &&
      (kind === undefined || rule.kind === kind) &&
      (table === undefined || rule.table === table) &&
      (engine === undefined || rule.engine === engine) &&
      (at === undefined || answersAt(rule, at as string)),
    row: ({ content, ...rule }) =>
      content === undefined
        ? rule
        : { ...rule, content_bytes: contentBytes(content as RuleContent) },
    columns: {
      ID: 'id',
      KIND: 'kind',
      ORIGIN: 'origin',
      PATH: 'path',
    },
  },
};

/** The parts of placing page rules, in data that a thread can get. */
export function rulePlacing({
  engines,
  accessNames,
}: Pick<RuleParts, 'engines' | 'accessNames'>): RevertPlacing {
  return { engines: [...engines], accessNames: [...accessNames] };
}

function placed({ rule, ...place }: StoredRule): StoredRecord<Rule> {
  return { record: rule, ...place };
}

function recordOf(stored: StoredRule | undefined): StoredRecord<Rule> | undefined {
  return stored && placed(stored);
}

function ruleOf({ record, ...place }: StoredRecord<Rule>): StoredRule {
  return { rule: record, ...place };
}

function* steps(walked: Iterable<RuleStep>): Iterable<RecordStep<Rule>> {
  for (const { stored, ...step } of walked) yield { ...step, stored: recordOf(stored) };
}

function* pathSteps(
  reads: Reads,
  { after, filters: { origin, path } }: { readonly after: string; readonly filters: JsonObject },
  descending: boolean,
): Iterable<RecordStep<Rule>> {
  const range = {
    after: after === '' ? undefined : after,
    descending,
    origin: typeof origin === 'string' ? origin : undefined,
    path: typeof path === 'string' ? path : undefined,
  };
  for (const { id, stored, size, place } of reads.of(storedRules).rulesByPath(range)) {
    yield { id, stored: recordOf(stored), size, cursor: place };
  }
}

/**
 * What a reader sees of versions of page rules: one with the scope read, a header value for a
 * source as long as the rule has it; one with the scope design, former ones, too
 * (docs/design/history.md#former-secrets).
 */
export function withoutFormerHeaders(
  states: readonly Pick<Reads, 'of'>[],
  reader: Reader,
): ShowFields {
  if (hasScope(reader, 'design')) return allShown;
  return (id, fields) => {
    const current = states.flatMap((state) => state.of(storedRules).rule(id)?.rule ?? []);
    return replaceFormerSecrets(fields, current, maskedValue);
  };
}

function answersAt(rule: Rule, at: string): boolean {
  const validity = validityOf(rule);
  return validity === undefined || isValidAt({ validity }, storedMomentMs(at));
}

function parseFilters({ origin, path, valid_at: at, ...others }: JsonObject): JsonObject {
  const canonicalOrigin = typeof origin === 'string' ? parseRuleOrigin(origin) : undefined;
  if (origin !== undefined && canonicalOrigin === undefined) {
    throw new Failure('invalid', 'origin must be scheme://host[:port], or *.', { field: 'origin' });
  }
  const moment = at === undefined ? undefined : limitOf(at);
  if (moment instanceof Failure) {
    throw new Failure('invalid', moment.message, { field: 'valid_at' });
  }
  return {
    ...others,
    ...(moment !== undefined && { valid_at: moment.at }),
    ...(canonicalOrigin !== undefined && { origin: canonicalOrigin }),
    // A filter that is not a path can be the key of a breadcrumb.
    ...(typeof path === 'string' && { path: canonicalPath(encodeNonAscii(path)) ?? path }),
  };
}

/** Content may have megabytes: a list has its length instead, and read returns it. */
function contentBytes(content: RuleContent): number {
  return typeof content === 'string'
    ? Buffer.byteLength(content)
    : Buffer.byteLength(content.base64, 'base64');
}
