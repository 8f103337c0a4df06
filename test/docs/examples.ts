import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { jsonSchemas } from '../../docs/reference/schemas.ts';
import { readPages } from '../../docs/site/build.ts';
import { problemText } from '../../src/core/config/problem.ts';
import { temporaryFolder, writeFiles } from '../folder.ts';
import { freePort } from '../free-port.ts';
import { startDemo } from '../browser/demo-site.ts';
import { startSite } from '../harness.ts';
import { program } from '../process.ts';
import { project } from '../tidy/sources.ts';
import { readConfig } from '../ini.ts';

/** A block of code of a page: `info` is what follows its fence. */
interface Block {
  readonly info: string;
  readonly code: string;
}

const readme = await readFile(join(project, 'README.md'), 'utf8');
const pages = new Map(
  [...(await readPages()), { address: 'README.md', markdown: readme }].map(
    ({ address, markdown }) => [
      address,
      [...markdown.matchAll(/^```([^\n]*)\n(.*?)^```$/gms)].map(
        ([, info = '', code = '']): Block => ({ info, code }),
      ),
    ],
  ),
);
const hasBash = spawnSync('bash', ['-c', 'curl --version && awk 1 /dev/null']).status === 0;

/** The pages that a newcomer reads first. */
export function isFirst(address: string): boolean {
  return address === 'README.md' || address.startsWith('start/');
}

/** Defines a test for each page of some with examples that run: they answer as they say. */
export function testPages(isMeant: (address: string) => boolean): void {
  for (const [address, blocks] of pages) {
    if (!isMeant(address) || !blocks.some(isRun)) continue;
    test(
      `in ${address} answer as they say`,
      { skip: !hasBash && 'needs bash and curl' },
      async (t) => {
        await runPage(t, blocks);
      },
    );
  }
}

/** Defines tests of the examples that do not run. */
export function testTexts(): void {
  test('in ini are valid', async (t) => {
    for (const [address, blocks] of pages) {
      for (const [at, { code }] of blocks.filter(({ info }) => info === 'ini').entries()) {
        if (address === 'reference/sample-ini.html') continue;
        const folder = await temporaryFolder(t);
        const listen = code.includes('[tls') ? 'listen = https://127.0.0.1:8443\n' : '';
        const text = code.includes('[server]') ? code : `[server]\n${listen}${code}`;
        await writeFiles(folder, { 'server.ini': text, 'central.key': 'wmk_x' });
        const file = join(folder, 'server.ini');
        const result = await readConfig({ file, env: {}, cores: 2, hostName: 'docs' });
        const problems = result.ok ? [] : result.problems;
        const wrong = problems.map(problemText).filter((one) => !aboutMissingFile.test(one));
        assert.deepEqual(wrong, [], `${address}, ini block ${at + 1}`);
      }
    }
  });

  test('in TypeScript have the types of the client', async (t) => {
    const folder = await temporaryFolder(t);
    await installClient(folder);
    const options = {
      ...{ strict: true, noEmit: true, target: 'esnext', module: 'nodenext', skipLibCheck: true },
      ...{ types: ['node'], allowImportingTsExtensions: true },
    };
    const programs = [...pages.values()].flat().filter(({ info }) => info === 'ts test');
    assert.ok(programs.length > 0);
    await writeFiles(folder, {
      'tsconfig.json': JSON.stringify({ compilerOptions: options, include: ['*.ts'] }),
      ...Object.fromEntries(programs.map(({ code }, at) => [`example-${at}.ts`, code])),
    });
    const tsc = join(project, 'node_modules/typescript/bin/tsc');
    const { stdout } = spawnSync(process.execPath, [tsc, '--project', folder], {
      encoding: 'utf8',
    });
    assert.equal(stdout, '');
  });

  test('in JSON can be parsed, and fit their schemas', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const schemas = jsonSchemas();
    for (const [address, blocks] of pages) {
      for (const { info, code } of blocks) {
        const [language, name = ''] = info.split(' ');
        if (language !== 'json') continue;
        const value: unknown = JSON.parse(code);
        const schema = schemas.get(name);
        if (schema === undefined) continue;
        assert.ok(ajv.validate(schema, value), `${address}: ${ajv.errorsText()}`);
      }
    }
  });

  test('of schemas are refused if they are wrong', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const valid: Readonly<Record<string, readonly [object, object]>> = {
      'page-rule': [
        { path: '/a', kind: 'content', content: 'x' },
        { path: '/a', kind: 'nothing' },
      ],
      hook: [
        { event: ['*'], url: 'https://a.example/' },
        { event: [], url: 1 },
      ],
      'ndjson-line': [
        { a: 'svc1.webhook.insert', v: { event: '*', url: 'https://a.example/' } },
        { a: 'svc1.nothing', v: {} },
      ],
      ini: [{ server: { 'listen[]': ['127.0.0.1:80'] }, 'disk.site': { root: '.' } }, { srv: {} }],
    };
    for (const [name, schema] of jsonSchemas()) {
      const [right, wrong] = valid[name] ?? [];
      assert.ok(ajv.validate(schema, right), `${name}: ${ajv.errorsText()}`);
      assert.equal(ajv.validate(schema, wrong), false, name);
    }
  });
}

/** Files of examples that a test does not have. */
const aboutMissingFile = /does not exist|cannot be read|no such file|there is no module/i;

/** Whether a test runs a block: commands on a site of its own or on the demo, or a program. */
function isRun({ info }: Block): boolean {
  return info === 'sh test' || info === 'sh demo' || info === 'ts test';
}

/** The commands of a block; those of a program write it and run it. */
function commandsOf({ info, code }: Block): string {
  if (info !== 'ts test') return code;
  return `cat > example.ts <<'END OF PROGRAM'\n${code}END OF PROGRAM\nnode example.ts\n`;
}

/** Makes the folder of a project in which `waymark/client` is installed, with the types of Node. */
async function installClient(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules');
  await mkdir(join(modules, 'waymark'), { recursive: true });
  const exports = { './client': './client/client.ts' };
  const manifest = { type: 'module', exports };
  await writeFiles(folder, {
    'package.json': '{"type": "module"}',
    'node_modules/waymark/package.json': JSON.stringify(manifest),
  });
  await symlink(join(project, 'src/cli/client'), join(modules, 'waymark/client'));
  await symlink(join(project, 'node_modules/@types'), join(modules, '@types'));
}

/** Runs the blocks of a page in one shell, and compares what each prints with its answer. */
async function runPage(t: TestContext, blocks: readonly Block[]): Promise<void> {
  const receiverPort = await freePort();
  const ports = new Map([['9099', receiverPort]]);
  for (const port of ['3000', '3001', '3002']) {
    let free = await freePort();
    while ([...ports.values()].includes(free)) free = await freePort();
    ports.set(port, free);
  }
  const withPorts = (code: string): string =>
    code.replaceAll(/\b(?:300[012]|9099)\b/g, (port) => String(ports.get(port) ?? port));
  const site = blocks.some(({ info }) => info === 'sh demo')
    ? await startDemo(t, receiverPort)
    : await startSite(t, {
        ini:
          '[fetch]\nallow_private = 127.0.0.0/8\n[webhook]\nallow_private = 127.0.0.0/8\n' +
          `[auth]\nanonymous = render\n${withPorts(proxiesOf(blocks))}`,
      });
  const bin = join(site.folder, 'bin');
  await mkdir(bin);
  await symlink(process.execPath, join(bin, 'node'));
  const command = join(bin, 'waymark');
  await writeFile(command, `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`);
  await chmod(command, 0o755);
  if (blocks.some(({ info }) => info === 'ts test')) await installClient(site.folder);
  const marker = '=== end of block ===';
  const runs = blocks.filter(isRun).map(commandsOf);
  const script = withPorts(runs.map((code) => `${code}\necho; echo '${marker}'\n`).join(''));
  const text = await new Promise<string>((resolve) => {
    const child = execFile(
      'bash',
      ['-c', `trap 'kill $(jobs -p) 2>/dev/null' EXIT\n${script}`],
      {
        cwd: site.folder,
        env: {
          ...process.env,
          PATH: `${bin}:${process.env.PATH ?? ''}`,
          SITE: site.url,
          KEY: site.adminKey,
          WAYMARK_URL: site.url,
          WAYMARK_APIKEY: site.adminKey,
          INI: site.iniFile,
        },
      },
      (_error, stdout, stderr) => {
        resolve(stdout + (stderr === '' ? '' : `\n(standard error: ${stderr})`));
      },
    );
    child.stdin?.end();
  });
  const printed = text.split(marker);
  const at = blocks.flatMap((block, index) => (isRun(block) ? [index] : []));
  for (const [run, index] of at.entries()) {
    const answer = blocks[index + 1];
    if (answer?.info !== 'text answer') continue;
    const shown = (printed[run] ?? '').trim();
    assert.match(shown, patternOf(answer.code.trim()), text);
  }
}

/** The sections of proxies in the ini files of a page. */
function proxiesOf(blocks: readonly Block[]): string {
  const sections = blocks
    .filter(({ info }) => info === 'ini')
    .flatMap(({ code }) => code.split(/^(?=\[)/m));
  return sections.filter((section) => section.startsWith('[proxy.')).join('\n');
}

/** The answer as a regular expression: `…` stands for any text. */
function patternOf(answer: string): RegExp {
  const parts = answer.split('…').map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*?').replaceAll('\n', '\\s*')}$`, 's');
}
