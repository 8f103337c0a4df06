import { clientCommand, type Subcommand } from '../../cli/remote/client-command.ts';
import { UsageError } from '../../cli/command.ts';
import { callApi } from '../../cli/remote/api-client.ts';
import { listSubcommand } from '../../cli/remote/list-command.ts';
import { operationSubcommands } from '../../cli/remote/operation-command.ts';

const filters = {
  prefix: { value: 'url', description: 'all URLs that start with this text' },
  rule: { value: 'id', description: 'all URLs that a page rule has fetched' },
};

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

const list = listSubcommand('cache.list', {
  summary: 'list cached responses',
  options: filters,
  columns: {
    STATUS: ({ status }) => String(status),
    BYTES: ({ bytes }) => String(bytes),
    AGE: (row) => `${row.age_seconds} s`,
    FRESH: (row) => `${row.fresh_seconds} s`,
    URL: ({ url, vary, range }) => {
      const more = [
        ...(vary.length > 0 ? [`(varies by ${vary.join(', ')})`] : []),
        ...(range === undefined ? [] : [`(bytes ${range})`]),
      ];
      return [url, ...more].join(' ');
    },
  },
});

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

/** `waymark cache purge | list | status`. */
export const defineCache = clientCommand({
  description: 'Show and purge cached content of other servers, through the HTTP API.',
  subcommands: operationSubcommands('cache', {
    purge: purgeAct(),
    list,
    status: statusAct(),
  }),
});
