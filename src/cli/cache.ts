import { clientCommand, table, type Act } from './client.ts';
import { UsageError } from './command.ts';
import { requireNoMore } from './options.ts';
import { callService } from './service.ts';

/** `waymark cache purge | list | status`: what is kept of other servers, through the HTTP API. */
export const cache = clientCommand({
  usage:
    'cache purge [URL] [--prefix P] [--rule ID] [--all] | ' +
    'cache list [--prefix P] [--rule ID] | cache status',
  summary: 'see what is kept of fetched content, and let go of it,',
  acts: { purge: purgeAct(), list: listAct(), status: statusAct() },
});

function purgeAct(): Act {
  return {
    takes: { prefix: 'text', rule: 'text', all: 'flag' },
    async *run([url, ...more], { service, input }) {
      requireNoMore(more);
      const v = { ...(url !== undefined && { url }), ...input };
      if (Object.keys(v).length !== 1) {
        throw new UsageError('What? A URL, --prefix, --rule or --all.');
      }
      const answer = await callService(service, 'svc1.cache.purge', { v });
      const { urls } = answer.data as { readonly urls: number };
      yield { answer, lines: [`${urls}`], notes: [`Let go of what was kept of ${urls} URLs.`] };
    },
  };
}

function listAct(): Act {
  return {
    takes: { prefix: 'text', rule: 'text' },
    async *run(words, { service, input }) {
      requireNoMore(words);
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
    takes: {},
    async *run(words, { service }) {
      requireNoMore(words);
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
