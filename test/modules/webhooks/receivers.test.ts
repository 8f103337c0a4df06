import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createSecret, parseSecret, signatureFields } from '../../../src/modules/webhooks/sign.ts';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { freePort } from '../../free-port.ts';
import { project } from '../../tidy/sources.ts';
import { oneClock } from '../../installed.ts';

const body = Buffer.from('{"type":"sale.completed","data":{"café":"☕","total":"12.50"}}');

/** A sample receiver of the page: its file, and the command that runs it. */
interface Sample {
  readonly name: string;
  readonly file: string;
  readonly needs: readonly string[];
  readonly words: (file: string, port: number) => readonly [string, ...string[]];
}

const servers: readonly Sample[] = [
  {
    name: 'node',
    file: 'receiver.mjs',
    needs: [process.execPath],
    words: (file) => [process.execPath, file],
  },
  {
    name: 'python',
    file: 'receiver.py',
    needs: ['python3'],
    words: (file) => ['python3', file],
  },
  { name: 'go', file: 'receiver.go', needs: ['go'], words: (file) => ['go', 'run', file] },
  {
    name: 'php',
    file: 'receiver.php',
    needs: ['php'],
    words: (file, port) => ['php', '-S', `127.0.0.1:${port}`, file],
  },
];

/** The code of a sample on the page. */
async function codeOf(name: string): Promise<string> {
  const page = await readFile(join(project, 'public/webhooks.html'), 'utf8');
  const found = new RegExp(`<pre[^>]*class="${name}"[^>]*>\\s*<code\\s*>([\\s\\S]*?)</code`).exec(
    page,
  );
  assert.ok(found?.[1] !== undefined, `the page has no sample for ${name}`);
  return found[1].replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}

function missing(needs: readonly string[]): string | false {
  const absent = needs.find((name) => spawnSync(name, ['--version']).error !== undefined);
  return absent === undefined ? false : `${absent} is not installed`;
}

async function sampleFile(t: TestContext, name: string, file: string): Promise<string> {
  const folder = await temporaryFolder(t);
  await writeFiles(folder, { [file]: await codeOf(name) });
  return join(folder, file);
}

/** Whether a port accepts connections. */
async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const connected = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return connected;
}

/** Runs a sample; resolves to its URL once it listens. */
async function startSample(t: TestContext, sample: Sample, secret: string): Promise<string> {
  const file = await sampleFile(t, sample.name, sample.file);
  const port = await freePort();
  const [command, ...words] = sample.words(file, port);
  const own = { WEBHOOK_SECRET: secret, PORT: String(port) };
  // Go keeps what it has built in the home folder, which a user may not have.
  const cache = existsSync(homedir()) ? {} : { GOCACHE: dirname(file) };
  const env = { ...process.env, ...own, ...cache };
  // It has its own process group, because the child of `go run` would outlive it.
  const child = spawn(command, words, { env, stdio: 'ignore', detached: true });
  t.after(() => endGroup(child));
  while (!(await isListening(port))) {
    assert.equal(child.exitCode, null, `${command} has ended`);
    await delay(20);
  }
  return `http://127.0.0.1:${port}/`;
}

async function endGroup(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null) return;
  process.kill(-child.pid, 'SIGKILL');
  await once(child, 'close');
}

function keyOf(secret: string): Buffer {
  return parseSecret(secret) ?? Buffer.alloc(0);
}

/** The header fields of a message that these secrets sign, the newest first, at a time. */
async function fieldsFor(
  secrets: readonly string[],
  nowMs = Date.now(),
): Promise<Record<string, string>> {
  const [newest = '', ...older] = secrets;
  const keys = [keyOf(newest), ...older.map(keyOf)] as const;
  const list = await signatureFields({ id: 'msg_1', nowMs, body, keys });
  const pairs = list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1] ?? '']] : []));
  return Object.fromEntries(pairs) as Record<string, string>;
}

/** Variants of a message, and whether each is genuine. */
async function messages(secret: string) {
  const other = createSecret(randomBytes);
  const flipped = Buffer.from(body);
  flipped[3] = (flipped[3] ?? 0) ^ 1;
  const minute = 60_000;
  const genuine = await fieldsFor([secret]);
  return [
    { what: 'as it was sent', isGenuine: true, fields: genuine, body },
    {
      what: 'beside a newer secret',
      isGenuine: true,
      fields: await fieldsFor([other, secret]),
      body,
    },
    {
      what: 'beside an older secret',
      isGenuine: true,
      fields: await fieldsFor([secret, other]),
      body,
    },
    { what: 'a flipped bit', isGenuine: false, fields: genuine, body: flipped },
    { what: 'another secret', isGenuine: false, fields: await fieldsFor([other]), body },
    { what: 'another id', isGenuine: false, fields: { ...genuine, 'webhook-id': 'msg_2' }, body },
    {
      what: 'ten minutes old',
      isGenuine: false,
      fields: await fieldsFor([secret], Date.now() - 10 * minute),
      body,
    },
    {
      what: 'ten minutes from now',
      isGenuine: false,
      fields: await fieldsFor([secret], Date.now() + 10 * minute),
      body,
    },
  ];
}

for (const sample of servers) {
  const options = { skip: missing(sample.needs) || (sample.name === 'go' && oneClock()) };
  test(`the sample in ${sample.name} accepts genuine messages only`, options, async (t) => {
    const secret = createSecret(randomBytes);
    const url = await startSample(t, sample, secret);
    for (const { what, isGenuine, fields, body: content } of await messages(secret)) {
      const headers = { ...fields, 'content-type': 'application/json' };
      const reply = await fetch(url, { method: 'POST', headers, body: content });
      assert.equal(reply.status, isGenuine ? 204 : 401, what);
    }
    const unsigned = await fetch(url, { method: 'POST', body });
    assert.equal(unsigned.status, 401, 'without a signature');
  });
}

suite('the sample for a shell and openssl', { skip: missing(['sh', 'openssl']) }, () => {
  async function runShell(
    words: readonly string[],
    { secret, input }: { readonly secret: string; readonly input: Buffer },
  ) {
    const env = { ...process.env, WEBHOOK_SECRET: secret };
    const child = spawn('sh', words, { env, stdio: ['pipe', 'ignore', 'ignore'] });
    child.stdin.on('error', () => undefined).end(input);
    const [code] = (await once(child, 'close')) as [number];
    return code;
  }

  test('accepts genuine messages only', async (t) => {
    const file = await sampleFile(t, 'shell', 'verify.sh');
    const secret = createSecret(randomBytes);
    for (const { what, isGenuine, fields, body: content } of await messages(secret)) {
      const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
      const words = [file, ...names.map((name) => fields[name] ?? '')];
      const code = await runShell(words, { secret, input: content });
      assert.equal(code, isGenuine ? 0 : 1, what);
    }
  });
});
