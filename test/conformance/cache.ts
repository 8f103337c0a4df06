import { startSite } from '../harness.ts';
import { prepareSuite, type Case, type Results } from './suite.ts';

/**
 * Runs the public suite for HTTP caches against the shared cache: `npm run conformance:cache`, with
 * the suite in the folder CACHE_TESTS, else the release on npm.
 */
async function main(): Promise<void> {
  const cleanups: (() => unknown)[] = [];
  try {
    const suite = await prepareSuite(process.env.CACHE_TESTS);
    const source = await suite.startSource();
    cleanups.push(() => {
      source.stop();
    });
    const site = await startSite(
      { after: (cleanup: () => unknown) => void cleanups.unshift(cleanup) },
      {
        ini: '[fetch]\nallow_private = 127.0.0.0/8\n[log]\nlevel = warn\naccess = no',
        rules: [everything(source.port)],
      },
    );
    report(suite.cases, await suite.run(site.url));
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

/** Says how many cases of each kind pass, and which do not. */
function report(cases: readonly Case[], results: Results): void {
  const byId = new Map(cases.map((one) => [one.id, one]));
  // As the suite's own pages count: a case says nothing where one that it depends on fails.
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
      say(`  ${id}: ${why}`);
    }
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

await main();
