import type { Operations } from '../../cli/client/operations.ts';
import { clientCommand, table, type Subcommand } from '../../cli/remote/client-command.ts';
import { callApi } from '../../cli/remote/api-client.ts';
import { UsageError } from '../../cli/command.ts';
import { momentOf } from '../../cli/options.ts';
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

const origin = {
  value: 'origin',
  description: 'the origin of the link; by default, that of the API',
};

const token: Subcommand = {
  summary: 'make a token that resolves a breadcrumb for one person, and print its link',
  args: { '<key>': 'the key of the breadcrumb' },
  options: {
    user: { value: 'name', description: 'the person for whom it resolves' },
    until: {
      value: 'end',
      description: 'when it ends: 90d, 2026-12-01T07:00Z, or 2026-12-01T08:00[Europe/Berlin]',
    },
    roles: { value: 'roles', description: 'the roles of the person, with commas between them' },
    origin,
  },
  writes: true,
  async *run([k = ''], { api, input, vk }) {
    const { user, until, roles } = input;
    if (typeof user !== 'string' || typeof until !== 'string') {
      throw new UsageError('Say for whom the token is, and when it ends: --user NAME --until 30d.');
    }
    const v = {
      ...input,
      k,
      user,
      until: momentOf(until),
      ...(typeof roles === 'string' && { roles: roles.split(',').map((role) => role.trim()) }),
    };
    const answer = await callApi(api, 'breadcrumb.token', { v, vk });
    const { id, url, until: end } = answer.data;
    yield {
      answer,
      lines: url === undefined ? [] : [url],
      notes: [
        url === undefined
          ? `Token ${id} was made before: its link is not shown again.`
          : `Token ${id} for ${user} ends: ${end}. The link is not shown again.`,
      ],
    };
  },
};

const tokens: Subcommand = {
  summary: 'list the tokens of breadcrumbs, when they end, and how often this node resolved them',
  args: { '[key]': 'the key of one breadcrumb' },
  options: { user: { value: 'name', description: 'one person' }, origin },
  async *run([k], { api, input }) {
    const v = { ...input, ...(k !== undefined && { k }) };
    const answer = await callApi(api, 'breadcrumb.tokens', { v });
    const { rows } = answer.data;
    const cells = rows.map((one) => [
      ...[one.id, one.state, one.until, String(one.uses), one.last_used ?? 'never'],
      ...[one.user, one.origin, one.k],
    ]);
    const names = ['ID', 'STATE', 'UNTIL', 'USES', 'LAST USED', 'USER', 'ORIGIN', 'KEY'];
    yield {
      answer,
      lines: cells.length === 0 ? [] : table(names, cells),
      notes: [`${counted(rows.length, 'token')}.`],
    };
  },
};

const revokeToken: Subcommand = {
  summary: 'revoke a token of a breadcrumb at once and for good',
  args: { '<id>': 'the id of the token' },
  writes: true,
  async *run([id = ''], { api, vk }) {
    const answer = await callApi(api, 'breadcrumb.revoke_token', { v: { id }, vk });
    yield { answer, lines: [], notes: [`Token ${id} is revoked.`] };
  },
};

/** `waymark breadcrumb visits | token | tokens | revoke-token`. */
export const defineBreadcrumb = clientCommand({
  description: 'Show the visits of breadcrumbs, and make and revoke tokens, through the HTTP API.',
  subcommands: { visits, token, tokens, 'revoke-token': revokeToken },
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
