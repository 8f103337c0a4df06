import type { Tried, TriedBranch, TriedCandidate } from '../model/explanation.ts';
import { isJsonObject } from '../model/json.ts';
import { say, UsageError, type Command } from './command.ts';
import { parseWords, requireNoMore } from './options.ts';
import { callService, serviceOf, serviceOptions, serviceUsage } from './service.ts';

const questionOptions = {
  method: { type: 'string' },
  lang: { type: 'string' },
  country: { type: 'string' },
  device: { type: 'string' },
  user: { type: 'string' },
  role: { type: 'string' },
  ip: { type: 'string' },
  at: { type: 'string' },
  draw: { type: 'string' },
  'as-of': { type: 'string' },
} as const;

/** `waymark explain`: which source answers a URL, and why no other: a client of the HTTP API. */
export const explain: Command = {
  usage:
    'explain URL|PATH [--as-of T] [--lang L] [--country C] [--device D] [--user U] [--role R] ' +
    `[--ip A] [--at T] [--draw N] [--method M]   ${serviceUsage}`,
  summary: 'say which source answers a URL and with which status, and what the others lost by',
  async run(words, terminal) {
    const { values, positionals } = parseWords(words, {
      ...serviceOptions,
      ...questionOptions,
      json: { type: 'boolean', default: false },
    });
    const [explained, ...more] = positionals;
    if (explained === undefined) throw new UsageError('Which URL, or path?');
    requireNoMore(more);
    const { url, apikey, config, json, 'as-of': asOf, ...question } = values;
    const service = await serviceOf({ url, apikey, config }, terminal);
    const v = { ...question, url: explained, as_of: asOf };
    const answer = await callService(service, 'svc1.userinterface.explain', { v });
    if (json) say(terminal.out, JSON.stringify(answer));
    else for (const line of linesOf(answer.data)) say(terminal.out, line);
    return 0;
  },
};

function linesOf(data: unknown): readonly string[] {
  if (!isJsonObject(data)) return [];
  const { says, tried, notes } = data as unknown as Said;
  return [says, ...notes, ...tried.flatMap((one) => ['', ...sourceLines(one)])];
}

interface Said {
  readonly says: string;
  readonly notes: readonly string[];
  readonly tried: readonly Tried[];
}

function sourceLines({ source, key, candidates, omitted = 0 }: Tried): readonly string[] {
  return [
    key === undefined ? source : `${source}, key ${key}`,
    ...(candidates.length === 0 ? ['  nothing for this'] : candidates.flatMap(candidateLines)),
    ...(omitted === 0 ? [] : [`  and ${omitted} more`]),
  ];
}

function candidateLines({
  mount,
  id = '',
  origin,
  path,
  kind,
  lost,
  branches = [],
}: TriedCandidate): readonly string[] {
  const name = mount ?? `${id} (${kind ?? 'rule'})`;
  const where = origin === '*' ? path : `${origin}${path.startsWith('/') ? '' : ' '}${path}`;
  const lines =
    lost === undefined
      ? [`  * ${name} at ${where}`]
      : [`    ${name} at ${where}`, `      ${lost.says} [${lost.code}]`];
  // A breadcrumb without conditions has nothing to tell of.
  return branches.length < 2 ? lines : [...lines, ...branches.flatMap(branchLines)];
}

function branchLines({ branch, lost }: TriedBranch): readonly string[] {
  if (lost === undefined) return [`      * ${branch}`];
  return [`        ${branch}`, `          ${lost.says} [${lost.code}]`];
}
