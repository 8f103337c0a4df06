import type { Operations } from '../../cli/client/operations.ts';
import { clientCommand, table, type Subcommand } from '../../cli/remote/client-command.ts';
import { callApi } from '../../cli/remote/api-client.ts';
import { counted } from '../../core/values/units.ts';

type BreadcrumbVisits = Operations['breadcrumb.visits']['output'];

const visits: Subcommand = {
  summary: 'print the visits of a breadcrumb, or the most visited ones',
  args: { '[key]': 'the key of one breadcrumb' },
  options: {
    origin: { value: 'origin', description: 'the origin of its page rule' },
    from: { value: 'day', description: 'the first day, such as 2026-11-24; by default, 30 days' },
    until: { value: 'day', description: 'the last day; by default, today' },
    limit: { value: 'number', description: 'breadcrumbs to print', isNumber: true },
  },
  async *run([k], { api, input }) {
    const v = { ...input, ...(k !== undefined && { k }) };
    const answer = await callApi(api, 'breadcrumb.visits', { v });
    const found = answer.data;
    const { from, until, visits, robots } = found;
    yield {
      answer,
      lines: found.keys === undefined ? linesOfKey(found) : linesOfAll(found.keys),
      notes: [
        `${from} to ${until}: ${counted(visits, 'visit')}, and ${robots} of robots.`,
        ...(found.retention_days === 0 ? ['[stats] retention = no: visits are not counted.'] : []),
      ],
    };
  },
};

/** `waymark breadcrumb visits`. */
export const defineBreadcrumb = clientCommand({
  description: 'Show the visits of breadcrumbs, through the HTTP API.',
  subcommands: { visits },
});

function linesOfAll(keys: NonNullable<BreadcrumbVisits['keys']>): readonly string[] {
  if (keys.length === 0) return [];
  const cells = keys.map(({ k, origin, ...counts }) => [
    ...[String(counts.visits), String(counts.robots)],
    ...[origin, k === '' ? '(other)' : k],
  ]);
  return table(['VISITS', 'ROBOTS', 'ORIGIN', 'KEY'], cells);
}

function linesOfKey(found: BreadcrumbVisits): readonly string[] {
  const days = found.days.filter((one) => one.visits + one.robots > 0);
  const cells = [
    ...days.map((one) => ['day', one.day, String(one.visits)]),
    ...cellsOf('branch', found.branches),
    ...cellsOf('country', found.countries),
    ...cellsOf('device', found.devices),
    ...cellsOf('host', found.hosts),
  ];
  return cells.length === 0 ? [] : table(['BY', 'NAME', 'VISITS'], cells);
}

function cellsOf(by: string, names: BreadcrumbVisits['branches']): readonly (readonly string[])[] {
  return names.map(({ name, visits: count }) => [by, name, String(count)]);
}
