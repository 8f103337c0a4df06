import type { TestContext } from 'node:test';
import { serverFolder, startServed } from '../process.ts';
import { prepareSuite, type Case, type Results } from './suite.ts';

/**
 * Runs the public suite for HTTP caches against the shared cache: `npm run conformance:cache`. The
 * environment variable CACHE_TESTS names the folder of the suite (by default, its release on npm),
 * and WORKERS the number of worker processes (by default 1).
 */
async function main(): Promise<void> {
  const cleanups: (() => unknown)[] = [];
  try {
    const suite = await prepareSuite(process.env.CACHE_TESTS);
    const source = await suite.startSource();
    cleanups.push(() => {
      source.stop();
    });
    const t = { after: (cleanup: () => unknown) => void cleanups.unshift(cleanup) } as TestContext;
    const workers = process.env.WORKERS ?? '1';
    const { iniFile } = await serverFolder(
      t,
      `import = rules.ndjson\nworkers = ${workers}\n[fetch]\nallow_private = 127.0.0.0/8\n` +
        '[log]\naccess = no',
      { 'rules.ndjson': JSON.stringify(everything(source.port)) },
    );
    const served = await startServed(t, iniFile);
    report(suite.cases, await suite.run(served.url));
  } finally {
    for (const cleanup of cleanups) await cleanup();
  }
}

function everything(port: number): object {
  return {
    path: '/*',
    kind: 'content.fetch',
    enginedata: {
      source: `http://127.0.0.1:${port}/*`,
      methods: ['GET', 'POST', 'PUT', 'DELETE', 'M-SEARCH'],
      pass: ['authorization', 'cookie'],
    },
  };
}

const cookies =
  'an answer with Set-Cookie is not stored, as in nginx, Varnish and Fastly (docs/how-to/' +
  'fetched-content.md): the suite stores it, as RFC 9111 permits';

/** Cases that fail because this project has decided otherwise, with the reason. */
const decidedOtherwise: Readonly<Record<string, string>> = {
  'headers-store-Set-Cookie': cookies,
  '304-etag-update-response-Set-Cookie': cookies,
  'other-set-cookie': cookies,
  'headers-store-Transfer-Encoding':
    'a source whose Transfer-Encoding is not `chunked` gets 502 (RFC 9112 §6.1): nothing of it is ' +
    'stored, and the suite waits for a 200',
};

/** Prints how many cases of each kind pass, and which fail. */
function report(cases: readonly Case[], results: Results): void {
  const byId = new Map(cases.map((one) => [one.id, one]));
  // As on the suite's own pages: a case counts as failed if one that it depends on fails.
  const passes = (id: string): boolean =>
    results[id] === true && (byId.get(id)?.depends_on ?? []).every(passes);
  for (const kind of ['required', 'optimal', 'check'] as const) {
    const ofKind = cases.filter((one) => (one.kind ?? 'required') === kind);
    const passed = ofKind.filter(({ id }) => passes(id));
    say(`${kind}: ${passed.length} of ${ofKind.length}`);
    for (const { id, depends_on = [] } of ofKind.filter((one) => !passes(one.id))) {
      const result = results[id];
      const why =
        result === true
          ? `depends on ${depends_on.filter((one) => !passes(one)).join(', ')}`
          : (result?.join(': ') ?? 'was not run');
      const decided = decidedOtherwise[id];
      say(`  ${id}: ${decided === undefined ? why : `decided otherwise, ${decided}`}`);
    }
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

await main();
