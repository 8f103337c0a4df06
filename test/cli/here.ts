import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { Readable, Writable } from 'node:stream';
import { run } from '../../src/cli/cli.ts';
import { namesOf } from '../../src/core/loader.ts';
import { modules } from '../../src/modules.ts';
import { startSite, type TestSite } from '../harness.ts';
import type { Finished } from '../process.ts';
import { readConfig } from '../ini.ts';

/**
 * Runs `waymark` with arguments to its end in this process, which takes a fraction of the time of
 * `runWaymark`.
 */
export async function runHere(
  words: readonly string[],
  { env = {}, input = '' }: { readonly env?: NodeJS.ProcessEnv; readonly input?: string } = {},
): Promise<Finished> {
  const [out, err] = [collecting(), collecting()];
  const code = await run(words, {
    out: out.stream,
    err: err.stream,
    input: () => Readable.from([Buffer.from(input)]),
    env,
    readConfig: (file, given) =>
      readConfig({ file, env, cores: 1, hostName: 'test', takenNames, ...given }),
  });
  return { code, signal: null, out: out.text(), err: err.text() };
}

const takenNames = () => Promise.resolve(namesOf(modules));

/** The command line as a client of a site. */
export interface Client {
  readonly site: TestSite;
  /** The environment by which the commands find the site. */
  readonly env: NodeJS.ProcessEnv;
  readonly waymark: (...words: string[]) => Promise<Finished>;
  /** Runs a command that must succeed; resolves to its standard output. */
  readonly out: (...words: string[]) => Promise<string>;
}

/** Starts a site as startSite does, with the command line as its client. */
export async function startClient(
  t: TestContext,
  given: Parameters<typeof startSite>[1] = {},
): Promise<Client> {
  const site = await startSite(t, given);
  const env = { WAYMARK_URL: site.url, WAYMARK_APIKEY: site.adminKey };
  const waymark = (...words: string[]) => runHere(words, { env });
  const out = async (...words: string[]): Promise<string> => {
    const finished = await waymark(...words);
    assert.equal(finished.code, 0, `${words.join(' ')}: ${finished.err}`);
    return finished.out;
  };
  return { site, env, waymark, out };
}

function collecting(): { readonly stream: Writable; readonly text: () => string } {
  let text = '';
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  return { stream, text: () => text };
}
