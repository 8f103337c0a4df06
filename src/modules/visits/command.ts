import type { Operations } from '../../cli/client/operations.ts';
import { callApi } from '../../cli/remote/api-client.ts';
import { singleCommand, table } from '../../cli/remote/client-command.ts';
import { counted } from '../../core/values/units.ts';

type VisitSummary = Operations['visit.summary']['output'];

/** `waymark visits`. */
export const defineVisits = singleCommand({
  summary: 'print the visits of pages, and who was refused, through the HTTP API',
  args: { '[path]': 'the path of one page' },
  options: {
    origin: { value: 'origin', description: 'the origin of the pages' },
    from: { value: 'day', description: 'the first day, such as 2026-11-24; by default, 30 days' },
    until: { value: 'day', description: 'the last day; by default, today' },
    limit: { value: 'number', description: 'pages to print', isNumber: true },
  },
  async *run([path], { api, input }) {
    const v = { ...input, ...(path !== undefined && { path }) };
    const answer = await callApi(api, 'visit.summary', { v });
    const found = answer.data;
    const { from, until, visits, robots } = found;
    yield {
      answer,
      lines: linesOf(found, path !== undefined),
      notes: [
        `${from} to ${until}: ${counted(visits, 'visit')}, and ${robots} of robots.`,
        ...(found.retention_days === 0 ? ['[stats] retention = no: visits are not counted.'] : []),
      ],
    };
  },
});

function linesOf(found: VisitSummary, isOfPage: boolean): readonly string[] {
  const days = isOfPage ? found.days.filter((one) => one.visits + one.robots > 0) : [];
  const { pages, requests } = found;
  const cells = [
    ...days.map((one) => ['day', one.day, String(one.visits)]),
    ...(isOfPage ? [] : pages.map((one) => ['page', pageName(one), String(one.visits)])),
    ...cellsOf('source', found.sources),
    ...cellsOf('country', found.countries),
    ...cellsOf('language', found.languages),
    ...cellsOf('device', found.devices),
    ...cellsOf('host', found.hosts),
  ];
  const sources = requests?.sources ?? [];
  const refused = requests?.refused ?? [];
  return [
    ...tableOf(['BY', 'NAME', 'VISITS'], cells),
    ...tableOf(
      ['SOURCE', 'ANSWERS', 'FAILED', 'SLOW'],
      sources.map((one) => [one.source, ...[one.answers, one.failed, one.slow].map(String)]),
    ),
    ...tableOf(
      ['REFUSED BY', 'STATUS', 'REASON', 'ANSWERS'],
      refused.map((one) => [one.source, String(one.status), one.reason, String(one.answers)]),
    ),
  ];
}

function tableOf(
  heading: readonly string[],
  cells: readonly (readonly string[])[],
): readonly string[] {
  return cells.length === 0 ? [] : table(heading, cells);
}

function pageName({ origin, path }: VisitSummary['pages'][number]): string {
  return path === '' ? '(other)' : `${origin}${path}`;
}

function cellsOf(by: string, names: VisitSummary['hosts']): readonly (readonly string[])[] {
  return names.map(({ name, visits }) => [by, name, String(visits)]);
}
