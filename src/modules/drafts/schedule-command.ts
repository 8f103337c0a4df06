import type { Operations } from '../../cli/client/operations.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { shownMoment, type NamedMoment } from '../../core/values/time.ts';
import { callApi } from '../../cli/remote/api-client.ts';
import { clientCommand, table, type Subcommand } from '../../cli/remote/client-command.ts';

type Draft = Operations['draft.list']['output']['rows'][number];
type RuleTime = Operations['userinterface.times']['output']['rows'][number];

/** A line of the list: when (ISO 8601 UTC), and its cells. */
interface Line {
  readonly at: string;
  readonly cells: readonly string[];
}

const list: Subcommand = {
  summary: 'list what happens at which time, the next one first, and what has failed',
  async *run(_args, { api }) {
    const drafts = await allOf('draft.list', { scheduled: true }, api);
    const times = await allOf('userinterface.times', {}, api);
    const rows = drafts.toSorted((one, other) => timeOf(one) - timeOf(other));
    const lines = [...drafts.map(draftLine), ...times.map(ruleLine)]
      .toSorted((one, other) => Date.parse(one.at) - Date.parse(other.at))
      .map(({ cells }) => cells);
    yield {
      answer: { data: { rows, rules: times } },
      lines: lines.length === 0 ? [] : table(['AT', 'WHAT', 'STATE'], lines),
      notes: lines.length === 0 ? ['Nothing is scheduled.'] : [],
    };
  },
};

/** All rows of a list, page by page. */
async function allOf<Name extends 'draft.list' | 'userinterface.times'>(
  operation: Name,
  v: JsonObject,
  api: Parameters<typeof callApi>[0],
): Promise<Operations[Name]['output']['rows']> {
  const pages: Operations[Name]['output']['rows'][] = [];
  let after: string | null = '';
  while (after !== null) {
    const page: JsonObject = after === '' ? v : { ...v, after };
    const answer: { readonly data: Operations[Name]['output'] } = await callApi(api, operation, {
      v: page,
    });
    pages.push(answer.data.rows);
    after = answer.data.next;
  }
  return pages.flat() as Operations[Name]['output']['rows'];
}

function timeOf({ schedule }: Draft): number {
  return Date.parse(schedule?.at ?? '');
}

function draftLine({ name, schedule }: Draft): Line {
  const { at = '', time_zone: zone, failed } = schedule ?? {};
  const state = failed === undefined ? 'waits' : `failed: ${failed.reason}`;
  return { at, cells: [shownMoment(namedAt(at, zone)), `publish ${name}`, state] };
}

function ruleLine({ at, time_zone: zone, what, origin, path }: RuleTime): Line {
  const place = origin === '*' ? path : `${origin} ${path}`;
  return { at, cells: [shownMoment(namedAt(at, zone)), `${place} ${what}`, 'waits'] };
}

function namedAt(at: string, zone: string | undefined): NamedMoment {
  return { at, ...(zone !== undefined && { time_zone: zone }) };
}

/** `waymark schedule list`. */
export const defineSchedule = clientCommand({
  description: 'Show what happens at which time, through the HTTP API.',
  subcommands: { list },
});
