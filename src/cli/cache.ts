import { clientCommand, table, type Act } from './client.ts';
import { UsageError } from './command.ts';
import { callService } from './service.ts';

const filters = {
  prefix: { value: 'url', description: 'all URLs that start so' },
  rule: { value: 'id', description: 'all that a page rule has fetched' },
};

/** `waymark cache purge | list | status`. */
export const defineCache = clientCommand({
  description: 'Show and purge what the cache has of other servers, through the HTTP API.',
  acts: { purge: purgeAct(), list: listAct(), status: statusAct() },
});

function purgeAct(): Act {
  return {
    summary: 'purge cached content at once, in all workers',
    words: { '[url]': 'one URL' },
    takes: { ...filters, all: { description: 'everything' } },
    async *run([url], { service, input }) {
      const v = { ...(url !== undefined && { url }), ...input };
      if (Object.keys(v).length !== 1) {
        throw new UsageError('say what to purge: a URL, --prefix, --rule or --all.');
      }
      const answer = await callService(service, 'svc1.cache.purge', { v });
      const { urls } = answer.data as { readonly urls: number };
      yield { answer, lines: [`${urls}`], notes: [`Purged ${urls} URLs.`] };
    },
  };
}

function listAct(): Act {
  return {
    summary: 'list cached responses',
    takes: filters,
    async *run(_words, { service, input }) {
      let after: string | undefined;
      do {
        const v = { ...input, ...(after !== undefined && { after }) };
        const answer = await callService(service, 'svc1.cache.list', { v });
        const { rows, next } = answer.data as unknown as Listed;
        const lines = table(['STATUS', 'BYTES', 'AGE', 'FRESH', 'URL'], rows.map(cells));
        yield { answer, lines: after === undefined ? lines : lines.slice(1) };
        after = next ?? undefined;
      } while (after !== undefined);
    },
  };
}

function statusAct(): Act {
  return {
    summary: 'print counts of the cache',
    async *run(_words, { service }) {
      const answer = await callService(service, 'svc1.cache.status', { v: {} });
      const counts = answer.data as Readonly<Record<string, number>>;
      yield { answer, lines: Object.entries(counts).map(([name, count]) => `${name} ${count}`) };
    },
  };
}

interface Listed {
  readonly rows: readonly {
    readonly url: string;
    readonly status: number;
    readonly bytes: number;
    readonly age_seconds: number;
    readonly fresh_seconds: number;
    readonly vary: readonly string[];
    readonly range?: string;
  }[];
  readonly next: string | null;
}

function cells(row: Listed['rows'][number]): readonly string[] {
  const { url, status, bytes, vary, range } = row;
  const more = [
    ...(vary.length > 0 ? [`(varies by ${vary.join(', ')})`] : []),
    ...(range === undefined ? [] : [`(bytes ${range})`]),
  ];
  const seconds = [row.age_seconds, row.fresh_seconds].map((one) => `${one} s`);
  return [String(status), String(bytes), ...seconds, [url, ...more].join(' ')];
}
