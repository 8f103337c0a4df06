import { originsOf } from '../rule.ts';
import type { StaticInput } from '../../../core/values/json/static.ts';
import { isRuleInside, type Bounds } from '../../../core/values/bounds.ts';
import { actions } from '../../../core/log/change.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import { originBytesMax, pathBytesMax } from '../../../core/values/limits.ts';
import { canonicalPath, encodeNonAscii, isRulePath } from '../../../core/values/path.ts';
import { preparedFor } from '../../../core/values/json/prepared-json.ts';
import type { StoredRule } from '../rule.ts';
import type { RecordChange } from '../../../core/log/store.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { recordSchemas } from '../../../core/operations/records/schema.ts';
import { parseRuleOrigin } from './fields.ts';
import { ruleFamily, withoutFormerHeaders, type RuleParts } from './rule-family.ts';
import { serverFields } from './rule-view.ts';
import { fromSeqProperty, streamFrom } from '../../../core/operations/records/stream.ts';

/** A change of a page rule. */
type RuleChange = RecordChange<StoredRule>;

const packetName = 'svc1.userinterface.change';
const seqSchema = { type: 'integer', description: 'Position in the log.' } as const;

const subscribeInput = {
  type: 'object',
  properties: {
    from_seq: fromSeqProperty,
    origin: { type: 'string', maxLength: originBytesMax, nullable: true },
    path: { type: 'string', minLength: 1, maxLength: pathBytesMax, nullable: true },
    id: { type: 'string', minLength: 1, maxLength: pathBytesMax, nullable: true },
  },
} as const;

type SubscribeInput = StaticInput<typeof subscribeInput>;

/**
 * userinterface.subscribe: the current seq, then a packet for each change of a page rule after
 * `from_seq` (by default, after the current seq), in the order of seq. `origin` and `path` (exact,
 * or a prefix with `*` at its end) select changes whose record matches before or after the change,
 * so that a subscriber learns when a page moves away; `id` selects one record. Refuses with
 * `invalid`, also for a seq that the log has not reached.
 */
export const subscribeToRules = defineOperation({
  name: 'svc1.userinterface.subscribe',
  scope: 'read',
  effect: 'streams',
  summary:
    'Changes of page rules as they are committed, in the order of seq, without gap or repeat.',
  input: subscribeInput,
  output: {
    title: 'Subscribed',
    type: 'object',
    required: ['seq'],
    properties: { seq: { ...seqSchema, description: 'The newest change now.' } },
  },
  packets: {
    r: packetName,
    data: {
      title: 'PageRuleChange',
      type: 'object',
      required: ['seq', 'txn', 'action', 'id', 'data', 'record'],
      properties: {
        seq: seqSchema,
        txn: { type: 'string', description: 'Id of the transaction.' },
        action: { type: 'string', enum: actions },
        id: { type: 'string', description: 'Id of the page rule.' },
        data: {
          type: 'object',
          additionalProperties: true,
          description: 'The data of the row, as in the history.',
        },
        record: {
          description: 'The page rule after the change; null if it was deleted.',
          oneOf: [recordSchemas(ruleFamily.schema).record, { type: 'null' }],
        },
      },
    },
  },
  run:
    ({ store }: Pick<RuleParts, 'store' | 'view'>) =>
    ({ from_seq: from, ...filters }, { caller }) => {
      const isWanted = filterOf(filters);
      const matches = (change: RuleChange): boolean => {
        const seen = changeInside(change, caller.bounds);
        return seen !== undefined && isWanted(seen);
      };
      return streamFrom(store, from, { family: 'userinterface', matches });
    },
  packet:
    ({ store, view }) =>
    (given, call) => {
      const seen = changeInside(given as RuleChange, call.caller.bounds);
      if (seen === undefined) throw otherKey();
      const { change, after } = seen;
      const { seq, txn, action, id, data } = change;
      const show = withoutFormerHeaders([store], call.caller);
      const record = after && {
        ...withPrepared(show(id, after.rule as unknown as JsonObject), after.rule),
        ...serverFields(after.rule, view, call.origin),
        seq: after.seq,
      };
      return {
        r: packetName,
        data: {
          seq,
          txn,
          action,
          id,
          data: { id, ...withPrepared(show(id, data), data) },
          record: record ?? null,
        },
      };
    },
});

/**
 * A change as a bound key sees it: a rule that moves out is removed. Undefined for one outside.
 */
function changeInside(change: RuleChange, bounds: Bounds | undefined): RuleChange | undefined {
  if (bounds === undefined) return change;
  const [before, after] = [change.before, change.after].map((stored) =>
    stored !== undefined && isRuleInside(bounds, stored.rule) ? stored : undefined,
  );
  if (before === undefined && after === undefined) return undefined;
  if (after !== undefined || change.after === undefined) {
    return { change: change.change, before, after };
  }
  return { change: { ...change.change, action: 'invalidate', data: {} }, before, after };
}

/** A websocket that has authenticated with a bound key since it subscribed. */
function otherKey(): Failure {
  return new Failure('forbidden', 'The key of this websocket is bound now: subscribe again.');
}

const preparedContent = preparedFor(({ content }: { readonly content?: unknown }) => content);

/**
 * Fields with the JSON of the content of their owner. The owner lives as long as the store caches
 * the change, so all packets to all subscribers share these bytes.
 */
function withPrepared(fields: JsonObject, owner: { readonly content?: unknown }): object {
  return typeof owner.content === 'string'
    ? { ...fields, content: preparedContent(owner) }
    : fields;
}

function filterOf({
  origin,
  path,
  id,
}: Omit<SubscribeInput, 'from_seq'>): (change: RuleChange) => boolean {
  const matchesOrigin = originFilter(origin);
  const matchesPath = pathFilter(path);
  const isThere = (stored: StoredRule | undefined): boolean =>
    stored !== undefined && matchesOrigin(stored.rule.origin) && matchesPath(stored.rule.path);
  const isAnywhere = (origin ?? path ?? null) === null;
  return ({ change, before, after }) =>
    ((id ?? null) === null || change.id === id) &&
    (isAnywhere || isThere(before) || isThere(after));
}

/** Compares with the canonical form, in which rules store an origin. */
function originFilter(given: string | undefined | null): (origin: string) => boolean {
  if (given === undefined || given === null) return () => true;
  const wanted = parseRuleOrigin(given);
  if (wanted !== undefined) return (origin) => originsOf(origin).includes(wanted);
  throw new Failure('invalid', 'origin must be scheme://host[:port], or *.', { field: 'origin' });
}

function pathFilter(given: string | undefined | null): (path: string) => boolean {
  if (given === undefined || given === null) return () => true;
  // A filter that does not start with / is the key of a breadcrumb.
  const wanted = given.startsWith('/') ? canonicalPath(encodeNonAscii(given)) : given;
  if (wanted === undefined || (given.startsWith('/') && !isRulePath(wanted))) {
    throw new Failure('invalid', 'path must be the path of a page rule, or one * at its end.', {
      field: 'path',
    });
  }
  if (!wanted.endsWith('*')) return (path) => path === wanted;
  const prefix = wanted.slice(0, -1);
  return (path) => path.startsWith(prefix);
}
