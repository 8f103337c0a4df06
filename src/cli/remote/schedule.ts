import type { Operations } from '../../client/operations.ts';
import type { JsonObject } from '../../model/json.ts';
import { shownMoment } from '../../model/time.ts';
import { callApi } from './api-client.ts';
import { clientCommand, table, type Subcommand } from './client-command.ts';

type Draft = Operations['draft.list']['output']['rows'][number];

const list: Subcommand = {
  summary: 'list what happens at which time, the next one first, and what has failed',
  async *run(_args, { api }) {
    const drafts: Draft[] = [];
    let after: string | null = '';
    while (after !== null) {
      const v: JsonObject = { scheduled: true, after };
      const answer: { readonly data: Operations['draft.list']['output'] } = await callApi(
        api,
        'draft.list',
        { v },
      );
      drafts.push(...answer.data.rows);
      after = answer.data.next;
    }
    const rows = drafts.toSorted((one, other) => timeOf(one) - timeOf(other));
    yield {
      answer: { data: { rows } },
      lines: rows.length === 0 ? [] : table(['AT', 'WHAT', 'STATE'], rows.map(cellsOf)),
      notes: rows.length === 0 ? ['Nothing is scheduled.'] : [],
    };
  },
};

function timeOf({ schedule }: Draft): number {
  return Date.parse(schedule?.at ?? '');
}

function cellsOf({ name, schedule }: Draft): readonly string[] {
  const { at = '', time_zone: zone, failed } = schedule ?? {};
  const moment = shownMoment({ at, ...(zone !== undefined && { time_zone: zone }) });
  return [moment, `publish ${name}`, failed === undefined ? 'waits' : `failed: ${failed.reason}`];
}

/** `waymark schedule list`. */
export const defineSchedule = clientCommand({
  description: 'Show what happens at which time, through the HTTP API.',
  subcommands: { list },
});
