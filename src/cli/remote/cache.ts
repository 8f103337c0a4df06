import type { Operations } from '../../client/operations.ts';
import { clientCommand, table, type Subcommand } from './client-command.ts';
import { UsageError } from '../command.ts';
import { callApi } from './api-client.ts';
import { operationSubcommands } from './operation-command.ts';

type CacheListRow = Operations['cache.list']['output']['rows'][number];

const filters = {
  prefix: { value: 'url', description: 'all URLs that start with this text' },
  rule: { value: 'id', description: 'all URLs that a page rule has fetched' },
};

/** `waymark cache purge | list | status`. */
export const defineCache = clientCommand({
  description: 'Show and purge cached content of other servers, through the HTTP API.',
  subcommands: operationSubcommands('cache', {
    purge: purgeAct(),
    list: listAct(),
    status: statusAct(),
  }),
});

function purgeAct(): Subcommand {
  return {
    summary: 'purge cached content at once, in all workers',
    args: { '[url]': 'one URL' },
    options: { ...filters, all: { description: 'everything' } },
    async *run([url], { api, input }) {
      const v = { ...(url !== undefined && { url }), ...input };
      if (Object.keys(v).length !== 1) {
        throw new UsageError('name what to purge: a URL, --prefix, --rule or --all.');
      }
      const answer = await callApi(api, 'cache.purge', { v });
      const { urls } = answer.data;
      yield { answer, lines: [`${urls}`], notes: [`Purged ${urls} URLs.`] };
    },
  };
}

function listAct(): Subcommand {
  return {
    summary: 'list cached responses',
    options: filters,
    async *run(_args, { api, input }) {
      let after: string | undefined;
      do {
        const v = { ...input, ...(after !== undefined && { after }) };
        const answer = await callApi(api, 'cache.list', { v });
        const { rows, next } = answer.data;
        const lines = table(['STATUS', 'BYTES', 'AGE', 'FRESH', 'URL'], rows.map(cells));
        yield { answer, lines: after === undefined ? lines : lines.slice(1) };
        after = next ?? undefined;
      } while (after !== undefined);
    },
  };
}

function statusAct(): Subcommand {
  return {
    summary: 'print counts of the cache',
    async *run(_args, { api }) {
      const answer = await callApi(api, 'cache.status', { v: {} });
      yield {
        answer,
        lines: Object.entries(answer.data).map(([name, count]) => `${name} ${count}`),
      };
    },
  };
}

function cells(row: CacheListRow): readonly string[] {
  const { url, status, bytes, vary, range } = row;
  const more = [
    ...(vary.length > 0 ? [`(varies by ${vary.join(', ')})`] : []),
    ...(range === undefined ? [] : [`(bytes ${range})`]),
  ];
  const seconds = [row.age_seconds, row.fresh_seconds].map((one) => `${one} s`);
  return [String(status), String(bytes), ...seconds, [url, ...more].join(' ')];
}
