import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../model/failure.ts';
import type { JsonObject } from '../../model/json.ts';
import { listCharactersMax, listRowsDefault, listRowsMax, ruleCharacters } from '../limits.ts';
import { listExaminedMax, listSliceRules } from './limits.ts';
import { canonicalPath, encodeNonAscii } from '../../model/path.ts';
import type { RuleContent, StoredRule } from '../../model/rule.ts';
import type { PastRules, Reads } from '../../store/store.ts';
import { isRuleKind, parseRuleOrigin } from './fields.ts';
import { showPast, shownRule } from './former-secrets.ts';
import { asOfProperty, rulesThen } from '../records/moment.ts';
import type { Handler } from '../operation.ts';
import { listedRule } from './record-schema.ts';
import { recordView, type ViewConfig } from './record.ts';
import { textSearch } from './text-search.ts';

interface ListInput {
  origin?: string;
  path?: string;
  kind?: string;
  table?: string;
  engine?: string;
  text?: string;
  after?: string;
  limit?: number;
  as_of?: string;
}

const optionalText = { type: 'string', nullable: true } as const;

/**
 * userinterface.list: page rules in the order of their ids, which is that of their inserts; those
 * that all filters let through, without their content. `next` goes into `after` for the next page;
 * it is null at the end. A page may be short of `limit` and still have a next one: so much is
 * looked at for one, and no more.
 */
export function listRules({
  store,
  view,
}: {
  readonly store: Pick<Reads, 'seq' | 'seqAt' | 'at' | 'recordsAfter' | 'rule'>;
  readonly view: ViewConfig;
}): Handler<ListInput> {
  return {
    summary: 'Page rules that all filters let through, in the order of their inserts.',
    output: {
      title: 'PageRuleList',
      type: 'object',
      required: ['rows', 'next'],
      properties: {
        rows: { type: 'array', items: listedRule },
        next: {
          type: ['string', 'null'],
          description: 'Goes into after for the next page; null at the end.',
        },
      },
    },
    input: {
      type: 'object',
      properties: {
        origin: optionalText,
        path: { ...optionalText, description: 'A prefix of the path, or of the key.' },
        kind: optionalText,
        table: optionalText,
        engine: optionalText,
        text: { ...optionalText, description: 'Found in any field, in any case of letters.' },
        after: { ...optionalText, description: 'The next of the page before.' },
        limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
        as_of: asOfProperty,
      },
    },
    run: async ({ after = '', limit = listRowsDefault, as_of: asOf, ...filters }, call) => {
      const then = rulesThen(store, asOf);
      const show = showPast(store, call);
      const shown = (stored: StoredRule): StoredRule =>
        then === undefined ? stored : shownRule(stored, show);
      const page = await readPage(
        then ?? store,
        { after, limit, shown, matches: filterOf(filters) },
        call.signal(),
      );
      return {
        kind: 'data',
        data: {
          rows: page.rows.map((stored) => listView(recordView(stored, view, call.origin))),
          next: page.next,
        },
      };
    },
  };
}

interface Page {
  readonly rows: readonly StoredRule[];
  readonly next: string | null;
}

/** Looks at rules a slice at a time, and lets others have their turn in between. */
async function readPage(
  rules: Pick<PastRules, 'recordsAfter'>,
  {
    after,
    limit,
    shown,
    matches,
  }: {
    readonly after: string;
    readonly limit: number;
    /** What the caller sees of a rule: nothing else is searched. */
    readonly shown: (stored: StoredRule) => StoredRule;
    readonly matches: (stored: StoredRule) => boolean;
  },
  signal: AbortSignal,
): Promise<Page> {
  const rows: StoredRule[] = [];
  let [characters, examined, last] = [0, 0, after];
  for (;;) {
    let inSlice = 0;
    let isEnd = true;
    for (const { id, stored, size } of rules.recordsAfter(last)) {
      last = id;
      const seen = stored && shown(stored);
      if (seen !== undefined && matches(seen)) {
        rows.push(seen);
        characters += JSON.stringify({ ...seen.rule, content: undefined }).length;
        if (rows.length === limit || characters > listCharactersMax) return { rows, next: last };
      }
      inSlice += 1 + Math.floor(size / ruleCharacters);
      if (inSlice >= listSliceRules) {
        isEnd = false;
        break;
      }
    }
    if (isEnd) return { rows, next: null };
    examined += inSlice;
    if (examined >= listExaminedMax) return { rows, next: last };
    await nextTurn(undefined, { signal });
  }
}

type Filters = Omit<ListInput, 'after' | 'limit' | 'as_of'>;

function filterOf({
  kind,
  table,
  engine,
  text,
  ...place
}: Filters): (stored: StoredRule) => boolean {
  if (kind !== undefined && !isRuleKind(kind)) {
    throw new Failure('invalid', 'kind is none of the kinds of page rule.', { field: 'kind' });
  }
  const origin = place.origin === undefined ? undefined : parseRuleOrigin(place.origin);
  if (place.origin !== undefined && origin === undefined) {
    throw new Failure('invalid', 'origin must be scheme://host[:port], or *.', { field: 'origin' });
  }
  // A path may be written as in a URL, as everywhere; what is none can be a breadcrumb's key.
  const path = place.path && (canonicalPath(encodeNonAscii(place.path)) ?? place.path);
  const holds = text === undefined ? undefined : textSearch(text);
  return ({ rule }) =>
    (origin === undefined || rule.origin === origin) &&
    (path === undefined || rule.path.startsWith(path)) &&
    (kind === undefined || rule.kind === kind) &&
    (table === undefined || rule.table === table) &&
    (engine === undefined || rule.engine === engine) &&
    (holds === undefined || holds(rule));
}

/** A page's content may be megabytes: a list says how long it is, and read gives it. */
function listView({ content, ...record }: JsonObject): JsonObject {
  if (content === undefined) return record;
  return { ...record, content_bytes: contentBytes(content as RuleContent) };
}

function contentBytes(content: RuleContent): number {
  return typeof content === 'string'
    ? Buffer.byteLength(content)
    : Buffer.byteLength(content.base64, 'base64');
}
