import type { Reads } from '../../../core/log/store.ts';
import type { RuleTime } from '../log/reads.ts';
import {
  listCharactersMax,
  listRowsDefault,
  listRowsMax,
} from '../../../core/operations/limits.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { isRuleInside } from '../../../core/values/bounds.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import { namedMoment } from '../../../core/values/time.ts';
import { momentCharactersMax } from '../../drafts/operations/limits.ts';
import { ruleKinds } from '../rule.ts';
import { limitOf } from './fields.ts';
import { storedRules } from '../log/family.ts';

/** Times of page rules that one page of userinterface.times looks at. */
const timesExaminedMax = 10_000;

/** A moment, the name of a field and an id. */
const cursorCharactersMax = 100;
const text = { type: 'string' } as const;
const moment = { ...text, nullable: true, maxLength: momentCharactersMax } as const;

const timeSchema = {
  title: 'RuleTime',
  type: 'object',
  required: ['at', 'what', 'id', 'origin', 'path', 'kind'],
  properties: {
    at: { ...text, format: 'date-time', description: 'In UTC.' },
    time_zone: { ...text, description: 'The time zone in which it was named.' },
    what: { ...text, enum: ['begins', 'ends'] },
    id: { ...text, description: 'The page rule.' },
    origin: text,
    path: text,
    kind: { ...text, enum: ruleKinds },
  },
} as const satisfies JsonObject;

/**
 * userinterface.times: when page rules begin to answer, and when they end, by `from` and `until`,
 * the earliest first. A key with bounds sees those inside.
 */
export const listTimes = defineOperation({
  name: 'svc1.userinterface.times',
  scope: 'read',
  effect: 'reads',
  inDrafts: true,
  summary: 'When page rules begin to answer and when they end, the next time first.',
  input: {
    type: 'object',
    properties: {
      from: { ...moment, description: 'The first moment, written as in from of a page rule: now.' },
      until: { ...moment, description: 'The moment before which they are.' },
      after: {
        ...text,
        nullable: true,
        maxLength: cursorCharactersMax,
        description: 'The next of the page before.',
      },
      limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
    },
  },
  output: {
    title: 'RuleTimeList',
    type: 'object',
    required: ['rows', 'next'],
    properties: {
      rows: { type: 'array', items: timeSchema },
      next: { type: ['string', 'null'], description: 'The after of the next page.' },
    },
  },
  run:
    ({ store, now }: { readonly store: Reads; readonly now: () => number }) =>
    (v, { caller: { bounds } }) => {
      const { from, until, after, limit = listRowsDefault } = v;
      const range = {
        from: momentOf('from', from) ?? new Date(now()).toISOString(),
        after,
        until: momentOf('until', until),
      };
      const rows: ReturnType<typeof timeRow>[] = [];
      let [examined, characters] = [0, 0];
      for (const time of store.of(storedRules).ruleTimes(range)) {
        const isSeen = isRuleInside(bounds, time.stored.rule);
        if (isSeen) rows.push(timeRow(time));
        examined += 1;
        characters += time.size;
        const isFull = rows.length >= limit || characters >= listCharactersMax;
        if (!isFull && examined < timesExaminedMax) continue;
        return {
          kind: 'data',
          data: { rows, next: isSeen ? time.cursor : nextUnseen(time, after) },
        };
      }
      return { kind: 'data', data: { rows, next: null } };
    },
});

/** The next page behind a rule that the caller does not see: without its id, if that leads on. */
function nextUnseen({ at, cursor }: RuleTime, after = ''): string {
  return at > after ? at : cursor;
}

function momentOf(field: string, text: string | undefined): string | undefined {
  const parsed = text === undefined ? undefined : limitOf(text);
  if (parsed instanceof Failure) throw new Failure('invalid', parsed.message, { field });
  return parsed?.at;
}

function timeRow({ at, field, stored: { rule } }: RuleTime) {
  const { time_zone: zone } = namedMoment(rule[field] ?? '');
  const { id, origin, path, kind } = rule;
  return {
    at,
    ...(zone !== undefined && { time_zone: zone }),
    what: field === 'from' ? ('begins' as const) : ('ends' as const),
    ...{ id, origin, path, kind },
  };
}
