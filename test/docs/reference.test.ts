import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { documentedCommands } from '../../docs/reference/commands.ts';
import { describedKeys } from '../../docs/reference/ini-file.ts';
import { commandOf } from '../../docs/reference/operations.ts';
import { generatedReference } from '../../docs/reference/reference.ts';
import { undescribed } from '../../docs/reference/schema-text.ts';
import { restartNeeded } from '../../src/core/config/restart.ts';
import { statusOf } from '../../src/core/http/reply.ts';
import { knownEventTypes } from '../../src/core/log/events/event-types.ts';
import { recordSchemas } from '../../src/core/operations/records/schema.ts';
import { conditionTypes } from '../../src/core/pipeline/conditions/table.ts';
import { problemReasons } from '../../src/core/values/failure.ts';
import { operations } from '../../src/modules.ts';
import { failuresOf, scopeSentence } from '../../src/modules/docs/envelope.ts';
import { createAccessLog } from '../../src/modules/logs/access-log.ts';
import { engineSchemas } from '../../src/modules/rules/operations/enginedata.ts';
import { kindSchemas } from '../../src/modules/rules/operations/kind-schemas.ts';
import { ruleSchema } from '../../src/modules/rules/operations/rule-schema.ts';
import { hookSchema } from '../../src/modules/webhooks/operations/hook-schema.ts';
import { startSite } from '../harness.ts';
import { project } from '../tidy/sources.ts';
import { assembleConfig, parseIni } from '../ini.ts';

const reference = await generatedReference();
const commands = await documentedCommands();
const page = (name: string): string => reference.get(`reference/${name}`) ?? '';

suite('the reference', () => {
  test('names every operation, and the command that calls it', () => {
    const text = page('operations');
    for (const { name, effect, replies } of operations) {
      assert.ok(text.includes(`\n### ${name}\n`), name);
      const isCallable = effect !== 'streams' && replies === undefined;
      const isOfCommand = /^svc1\.(?:userinterface|webhook|event|cache|key)\./.test(name);
      if (!isCallable || !isOfCommand || withoutCommand.includes(name)) continue;
      assert.ok(commandOf(name, commands) !== undefined, `${name} has no command`);
    }
  });

  test('describes the fields of page rules, of hooks and of enginedata', () => {
    const schemas = [
      ...[ruleSchema, hookSchema].map((schema) => recordSchemas(schema).record),
      ...Object.values(kindSchemas),
      ...engineSchemas.values(),
    ];
    for (const schema of schemas) {
      assert.deepEqual(undescribed(schema), [], JSON.stringify(schema.title));
    }
  });

  test('has every condition, event type and command', () => {
    for (const { name } of conditionTypes)
      assert.ok(page('conditions').includes(`| \`${name}\` |`));
    for (const { type } of knownEventTypes) assert.ok(page('events').includes(`\n## ${type}\n`));
    for (const { name, description, options } of commands) {
      assert.ok(page('commands').includes(`\n## waymark ${name}\n`), name);
      assert.notEqual(description, '', name);
      for (const [flags, text] of options) assert.notEqual(text, '', `${name} ${flags}`);
    }
  });

  test('has every metric that the code can answer', () => {
    const names = globSync('src/**/*.ts', { cwd: project }).flatMap((path) => {
      const text = textOf(path);
      return [
        ...text.matchAll(/(?:name: |\('(?:counter|gauge)', |gauge\()'(waymark_[a-z0-9_]+)'/g),
      ].map(([, name = '']) => name);
    });
    const missing = names.filter(
      (name) => name !== 'waymark_lot' && !page('metrics').includes(name),
    );
    assert.deepEqual(missing, []);
  });

  test('says of each ini key that came after 0.2 since when it is there', () => {
    const count = (version: string) => describedKeys().filter(({ since }) => since === version);
    // The keys of a version do not become more: a new one says `since`.
    assert.deepEqual([count('0.1').length, count('0.2').length], [67, 145]);
  });

  test('says of each ini key whether a change needs a restart, as the server does', () => {
    // A test of custom modules does it for those, which have to be there.
    const fixed = describedKeys().filter(({ section }) => section !== 'module.<name>');
    for (const { section, name, example, restart } of fixed) {
      const header = `[${titleOf(section)}]`;
      const others = Object.entries(settingsInUse[section] ?? {}).filter(([key]) => key !== name);
      const lines = [header, ...others.map(([key, value]) => `${key} = ${value}`)];
      const before = configOf(lines.join('\n'));
      const after = configOf([...lines, `${name} = ${example}`].join('\n'));
      const needsRestart = restartNeeded(before, after).includes(`${header} ${name}`);
      assert.equal(restart, needsRestart, `${header} ${name}`);
    }
  });

  test('has the fields that the access log writes, and no others', () => {
    const lines: string[] = [];
    const sink = { write: (text: string) => lines.push(text) };
    const log = createAccessLog({ format: 'json', sink, now: () => 0 });
    const texts = { address: '::1', method: 'GET', target: '/', host: 'a', httpVersion: '1.1' };
    const agent = {
      userAgent: 'a',
      referer: 'a',
      accept: '*/*',
      acceptLanguage: '',
      purpose: '',
      source: 'none',
      cache: 'hit',
    };
    const numbers = { status: 200, bytes: 1, durationMs: 1 };
    const ids = { failureId: 'a', keyId: 'a', traceId: 'a' };
    log.add({ ...texts, ...agent, ...numbers, ...ids, cut: true });
    log.flush();
    const written = Object.keys(JSON.parse(lines.join('')) as object);
    const [, table = ''] = textOf('docs/reference/log.md').split(/^## .*$/m);
    const shown = [...table.matchAll(/^\| `(\w+)` /gm)].map(([, name]) => name);
    assert.deepEqual(shown, written);
  });

  test('has the fields of other messages of the log', () => {
    const [, , table = ''] = textOf('docs/reference/log.md').split(/^## .*$/m);
    const shown = [...table.matchAll(/^\| `(\w+)` /gm)].map(([, name = '']) => name);
    const code = globSync('src/**/*.ts', { cwd: project }).map(textOf).join('\n');
    const calls = /\blog(?:\.(?:debug|info|warn|error)|\[level\])\(\s*\{([^]*?)\},\s/gi;
    const inCalls = [...code.matchAll(calls)];
    const used = inCalls.flatMap(([, fields = '']) =>
      [...fields.matchAll(/(?:^|[{,])\s*(\w+)(?=\s*(?:[,:}]|$))/g)].map(([, name = '']) => name),
    );
    assert.ok(used.includes('hook') && used.includes('more'), used.join(' '));
    assert.deepEqual(
      [...new Set(used)].filter((name) => !shown.includes(name)),
      [],
    );
    const named = new RegExp(`[{,]\\s*(${shown.join('|')})(?=\\s*[,:}])`, 'g');
    const inCode = new Set([...code.matchAll(named)].map(([, name]) => name));
    assert.deepEqual(
      shown.filter((name) => !inCode.has(name)),
      [],
    );
  });

  test('has the environment variables that the code reads', () => {
    const paths = [...globSync('src/**/*.ts', { cwd: project }), 'bin/waymark.js'];
    const code = [...paths, 'packaging/main.cjs'].map(textOf).join('\n');
    const used = [
      ...code.matchAll(/\benv\??\.([A-Z][A-Z_]+)/g),
      ...code.matchAll(/Variable = '(WAYMARK_[A-Z_]+)'/g),
    ].map(([, name = '']) => name);
    for (const [, names = ''] of code.matchAll(/const \{ ([A-Z][^}]*) \} = (?:process\.)?env;/g)) {
      used.push(...names.split(',').map((one) => /[A-Z_]+/.exec(one)?.[0] ?? ''));
    }
    assert.ok(used.includes('LISTEN_FDS') && used.includes('CACHE_DIRECTORY'), used.join(' '));
    const text = textOf('docs/reference/environment.md');
    const shown = [...text.matchAll(/`([A-Z][A-Z_]+)`/g)].map(([, name = '']) => name);
    assert.deepEqual(
      [...new Set(used)].filter((name) => !shown.includes(name)),
      [],
    );
    assert.deepEqual(
      shown.filter((name) => !code.includes(name)),
      [],
    );
  });

  test('has the files of the data folder', async (t) => {
    const text = textOf('docs/reference/data-folder.md');
    const shown = [...text.matchAll(/^\| `([^`…]+)…?` /gm)].map(([, name = '']) => name);
    const code = globSync('src/**/*.ts', {
      cwd: project,
      exclude: ['src/core/config/**', 'src/cli/demo*'],
    })
      .map(textOf)
      .join('\n');
    const named = [...code.matchAll(/'([a-z-]+\.(?:mdb|pid|json))'|, '(\.[a-z]+-)'/g)].map(
      ([, file, draft]) => file ?? draft ?? '',
    );
    assert.ok(named.includes('series.json') && named.includes('.new-'), named.join(' '));
    const site = await startSite(t, {});
    const there = await readdir(join(site.folder, 'data'));
    const missing = [...named, ...there].filter((name) => !shown.includes(name));
    assert.deepEqual(missing, []);
    const purposes = code.includes("type Purpose = 'serve' | 'deliver'");
    assert.ok(purposes, 'the claims are serve.pid and deliver.pid');
    const claims = ['serve.pid', 'deliver.pid'];
    assert.deepEqual(
      shown.filter((name) => !code.includes(`'${name}'`) && !claims.includes(name)),
      [],
    );
  });

  test('has the codes of failures, and the reasons of problems', () => {
    for (const name of [...Object.keys(statusOf), ...problemReasons]) {
      assert.ok(page('errors').includes(`| \`${name}\``), name);
    }
  });

  test('says of each operation its scope, its failures and its place in the websocket', () => {
    const parts = page('operations').split(/^### /m);
    for (const operation of operations) {
      const text = parts.find((part) => part.startsWith(`${operation.name}\n`)) ?? '';
      assert.ok(text.includes(scopeSentence(operation)), operation.name);
      for (const code of failuresOf(operation)) {
        assert.ok(text.includes(`\`${code}\` (${statusOf[code]})`), `${operation.name} ${code}`);
      }
      assert.match(text, /^Websocket: `\{"a":"svc1\./m, operation.name);
    }
  });

  test('has the header fields that the code names, and no others', () => {
    // The fields of src/modules/cluster are those of messages in NATS.
    const files = globSync('src/**/*.ts', { cwd: project, exclude: ['src/modules/cluster/**'] });
    const sources = files.map((path) => textOf(path).replaceAll(/example: '.*'/g, ''));
    // A field has a dash and capitals, or is one of the words that HTTP has without a dash.
    const inCode =
      /'([A-Z][A-Za-z]*(?:-[A-Z][A-Za-z]*)+|Age|Allow|Date|ETag|Location|Vary|Via)'|'(webhook-[a-z]+)'/g;
    const used = sources.flatMap((text) => [...text.matchAll(inCode)].map(([, a, b]) => a ?? b));
    const shown = namesInTables(textOf('docs/reference/headers.md'));
    const missing = used.filter((name = '') => !shown.has(name.toLowerCase()));
    assert.deepEqual([...new Set(missing)], []);
    const code = sources.join('\n').toLowerCase();
    assert.deepEqual(
      [...shown].filter((name) => !code.includes(name)),
      [],
    );
  });

  test('names each dependency with its licence, and no other package', () => {
    const text = textOf('docs/explanation/dependencies.md');
    const rows = [...text.matchAll(/^\| `(.+?)` +\| (\S+) +\| (.+?) *\|$/gm)];
    const shown = new Map(rows.map(([, name = '', licence = '']) => [name, licence]));
    const { dependencies, optionalDependencies, devDependencies } = packageAt('package.json');
    const names = Object.keys({ ...dependencies, ...optionalDependencies, ...devDependencies });
    assert.deepEqual([...shown.keys()].toSorted(), names.toSorted());
    for (const [name, licence] of shown) {
      const { license = '' } = packageAt(`node_modules/${name}/package.json`);
      // Of several licences, the table names the one that Waymark uses.
      const choices = license.replace(/[()]/g, '').split(' OR ');
      assert.ok(choices.includes(licence), `${name}: ${licence}, not ${license}`);
    }
  });

  test('has valid examples of ini keys', () => {
    for (const { section, name, example } of describedKeys()) {
      const server = section === 'server' ? '' : '[server]\n';
      const { problems } = parseIni(`${server}[${titleOf(section)}]\n${name} = ${example}\n`, {
        env: {},
      });
      assert.deepEqual(problems, [], `[${section}] ${name}`);
    }
  });
});

/** Operations that only pages in a browser call. */
const withoutCommand = ['svc1.userinterface.tree'];

/** Settings without which the server does not use the other keys of their section. */
const settingsInUse: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  tls: { cert: 'a.pem', key: 'a.key' },
  'tls.<host>': { cert: 'a.pem', key: 'a.key' },
  node: { central: 'https://central.example.com', key_file: 'a.key' },
};

interface Package {
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

function packageAt(path: string): Package {
  return JSON.parse(textOf(path)) as Package;
}

function textOf(path: string): string {
  return readFileSync(join(project, path), 'utf8');
}

/** The lower-case names of fields in the first column of all tables. */
function namesInTables(markdown: string): ReadonlySet<string> {
  const cells = markdown.split('\n').flatMap((line) => /^\| (`[^|]*)\|/.exec(line)?.[1] ?? []);
  const names = cells.flatMap((cell) => [...cell.matchAll(/`([A-Za-z-]+)/g)]);
  return new Set(names.map(([, name = '']) => name.toLowerCase()));
}

function titleOf(section: string): string {
  const name = section === 'event.<name>' ? 'order.shipped' : 'x';
  return section.replace('<name>', name).replace('<host>', 'www.example.com');
}

function configOf(text: string) {
  const ini = parseIni(text, { env: {} });
  const file = { file: '/w/server.ini', folder: '/w' };
  return assembleConfig(ini, { ...file, cores: 4, hostName: 'here' });
}
