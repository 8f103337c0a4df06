import { actions } from '../../model/change.ts';
import { Failure } from '../../model/failure.ts';
import { originBytesMax, pathBytesMax } from '../../model/limits.ts';
import type { JsonObject } from '../../model/json.ts';
import { canonicalPath, encodeNonAscii } from '../../model/path.ts';
import { preparedFor } from '../../model/prepared-json.ts';
import type { StoredRule } from '../../model/rule.ts';
import type { Reads, RuleChange } from '../../store/store.ts';
import { parseRuleOrigin } from './fields.ts';
import { showPast, shownRule } from './former-secrets.ts';
import type { Description, Handler } from '../operation.ts';
import { pageRule } from './record-schema.ts';
import { recordView, type ViewConfig } from './record.ts';
import { fromSeqProperty, streamFrom, type StreamedLog } from './stream.ts';

interface SubscribeInput {
  from_seq?: number;
  origin?: string;
  path?: string;
  id?: string;
}

const packetName = 'svc1.userinterface.change';
const seqSchema = { type: 'integer', description: 'Position in the log.' } as const;

const description: Description = {
  summary: 'Changes of page rules as they come, in the order of seq, without gap or repeat.',
  output: {
    title: 'Subscribed',
    type: 'object',
    required: ['seq'],
    properties: { seq: { ...seqSchema, description: 'The newest change of now.' } },
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
          description: 'What was written, as the history shows it.',
        },
        record: {
          description: 'The page rule as it is then; null when it is gone.',
          oneOf: [pageRule, { type: 'null' }],
        },
      },
    },
  },
};

/**
 * userinterface.subscribe: the seq of now, then a packet for each change of a page rule behind
 * `from_seq`, or behind now where that is not given, in the order of seq. `origin` and `path`
 * (exact, or a prefix with `*` at its end) let a change through when the record fits before or
 * after it, so that a page that moves away is told too; `id` lets one record through. Refuses with
 * `invalid`, also for a seq that the log has not reached.
 */
export function subscribeToRules({
  store,
  view,
}: {
  readonly store: StreamedLog & Pick<Reads, 'rule'>;
  readonly view: ViewConfig;
}): Handler<SubscribeInput> {
  return {
    ...description,
    input: {
      type: 'object',
      properties: {
        from_seq: fromSeqProperty,
        origin: { type: 'string', maxLength: originBytesMax, nullable: true },
        path: { type: 'string', minLength: 1, maxLength: pathBytesMax, nullable: true },
        id: { type: 'string', minLength: 1, maxLength: pathBytesMax, nullable: true },
      },
    },
    run: ({ from_seq: from, ...filters }) => streamFrom(store, from, filterOf(filters)),
    packet: ({ change, after }, call) => {
      const { seq, txn, action, id, data } = change;
      const show = showPast(store, call);
      const shown = after && shownRule(after, show);
      return {
        r: packetName,
        data: {
          seq,
          txn,
          action,
          id,
          // As a row of the history shows it.
          data: { id, ...withPrepared(show(id, data), data) },
          record:
            after === undefined || shown === undefined
              ? null
              : withPrepared(recordView(shown, view, call.origin), after.rule),
        },
      };
    },
  };
}

const preparedContent = preparedFor(({ content }: { readonly content?: unknown }) => content);

/**
 * Fields with the content of their owner, which lives as long as the change is remembered: all
 * packets share its bytes for all subscribers.
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
  const originFits = originFilter(origin);
  const pathFits = pathFilter(path);
  const isThere = (stored: StoredRule | undefined): boolean =>
    stored !== undefined && originFits(stored.rule.origin) && pathFits(stored.rule.path);
  const isAnywhere = (origin ?? path ?? null) === null;
  return ({ change, before, after }) =>
    ((id ?? null) === null || change.id === id) &&
    (isAnywhere || isThere(before) || isThere(after));
}

/** What a caller writes for a place is compared in the form in which rules keep it. */
function originFilter(given: string | undefined | null): (origin: string) => boolean {
  if (given === undefined || given === null) return () => true;
  const wanted = parseRuleOrigin(given);
  if (wanted !== undefined) return (origin) => origin === wanted;
  throw new Failure('invalid', 'origin must be scheme://host[:port], or *.', { field: 'origin' });
}

function pathFilter(given: string | undefined | null): (path: string) => boolean {
  if (given === undefined || given === null) return () => true;
  // What is no path can be the key of a breadcrumb.
  const wanted = given.startsWith('/') ? canonicalPath(encodeNonAscii(given)) : given;
  if (wanted === undefined || (given.startsWith('/') && wanted.slice(0, -1).includes('*'))) {
    throw new Failure('invalid', 'path must be a path, exact or with one * at its end.', {
      field: 'path',
    });
  }
  if (!wanted.endsWith('*')) return (path) => path === wanted;
  const prefix = wanted.slice(0, -1);
  return (path) => path.startsWith(prefix);
}
