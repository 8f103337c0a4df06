import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { operationTypes } from '../../docs/reference/operation-types.ts';
import { modules as modulesOfWaymark } from '../../src/modules.ts';
import { parseSource, project, readSources, type Source } from './sources.ts';

const clientPath = 'src/cli/client/client.ts';
/** The types of all operations, whether this project uses them or not; it is not in Git. */
const generated = 'src/cli/client/operations.ts';
const sources = [
  ...readSources('src/**/*.ts').filter(({ path }) => path !== generated),
  parseSource(generated, operationTypes()),
];
const tests = readSources('test/**/*.ts');
const modules = readSources('public/**/*.js').filter(
  // Built from the sources in console/ and docs/.
  ({ path }) => !/^public\/(?:console|docs)\//.test(path),
);
const browser = readSources('console/src/**/*.{ts,tsx}');
const byPath = new Map([...sources, ...browser].map((source) => [source.path, source]));

/** The rooms of src/, from the ground: a file imports its own room and lower ones. */
const layers: readonly (readonly string[])[] = [
  ['core/values'],
  ['core/http', 'core/report'],
  ['core/fair'],
  ['core/config', 'core/background'],
  ['core/outbound', 'core/log'],
  ['core/pipeline'],
  ['core/operations'],
  ['core/server'],
  ['core/module.ts'],
  ['core/loader.ts'],
  ['core/custom'],
  ['modules'],
  ['modules.ts', 'sections.ts', 'families.ts'],
  ['cli'],
  ['main.ts'],
];

/** How many imports still run from the core to a module. The number only falls. */
const coreToModulesMax = 49;

/** How many imports still run from a room of the core to one above it. The number only falls. */
const backUpMax = 16;

/** Modules that still import each other. The list only gets shorter. */
const mutualModules = [
  'acme ↔ status',
  'breadcrumbs ↔ rules',
  'compare ↔ drafts',
  'drafts ↔ rules',
  'headers ↔ redirects',
  'nodes ↔ upkeep',
  'nodes ↔ webhooks',
  'proxy ↔ rules',
];

/** Imports that still run up to the list of the modules or the start of the server. */
const stillUp = [
  'src/core/server/listening/listener.ts imports src/cli/serve/inherited-sockets.ts',
  'src/core/server/server.ts imports src/cli/serve/inherited-sockets.ts',
  'src/modules/convert/conversion.ts imports src/sections.ts',
  'src/modules/status/log-command.ts imports src/modules.ts',
];

/** Files of a module that may import the command line: its commands, and what they draw. */
const usesCommandLine =
  /^src\/modules\/.*(?:\bcommand[\w-]*|-command|compare-pictures|chromium)\.ts$/;

const layerByRoom = new Map(layers.flatMap((names, layer) => names.map((name) => [name, layer])));

/** `core/log`, `modules`, `cli`, or the name of a file: what stands on a layer. */
function roomOf(path: string): string {
  const [, first = '', second = ''] = path.split('/');
  return first === 'core' ? `core/${second}` : first;
}

/** The name of the module that a file belongs to. */
function moduleOf(path: string): string | undefined {
  return /^src\/modules\/([^/]+)\//.exec(path)?.[1];
}

function layerOf(path: string): number {
  const layer = layerByRoom.get(roomOf(path));
  assert.notEqual(layer, undefined, `${path} stands on no layer`);
  return layer ?? 0;
}

function offenders(isWrong: (source: Source) => boolean): readonly string[] {
  return sources.filter(isWrong).map(({ path }) => path);
}

/** All imports from one room to another. */
function importsAcross(): readonly { readonly path: string; readonly target: string }[] {
  return sources.flatMap(({ path, imports }) =>
    [...new Set(imports)]
      .filter((target) => target.startsWith('src/') && roomOf(target) !== roomOf(path))
      .map((target) => ({ path, target })),
  );
}

test('a file imports its own room and lower ones only', () => {
  const upwards = importsAcross().filter(
    ({ path, target }) => layerOf(target) >= layerOf(path) && roomOf(path) !== 'cli',
  );
  const print = ({ path, target }: { path: string; target: string }): string =>
    `${path} imports ${target}`;
  const isCore = (path: string): boolean => path.startsWith('src/core/');
  const isOfModule = (path: string): boolean => moduleOf(path) !== undefined;
  const intoModules = upwards.filter(({ path, target }) => isCore(path) && isOfModule(target));
  assert.ok(intoModules.length <= coreToModulesMax, `${intoModules.length} imports of modules`);
  const backUp = upwards.filter(({ path, target }) => isCore(path) && isCore(target));
  assert.ok(backUp.length <= backUpMax, backUp.map(print).join('\n'));
  const others = upwards
    .filter(({ path, target }) => !isCore(path) || roomOf(target) === 'cli')
    .filter(({ path, target }) => !usesCommandLine.test(path) || roomOf(target) !== 'cli');
  assert.deepEqual(
    others.map(print).filter((text) => !stillUp.includes(text)),
    [],
  );
});

test('no two modules import each other but those that did', () => {
  const pairs = new Set(
    sources.flatMap(({ path, imports }) => {
      const from = moduleOf(path);
      const targets = imports.map(moduleOf).filter((to) => to !== undefined && to !== from);
      return from === undefined ? [] : targets.map((to) => `${from} → ${to}`);
    }),
  );
  const mutual = [...pairs]
    .map((pair) => pair.split(' → '))
    .filter(([one = '', other = '']) => one < other && pairs.has(`${other} → ${one}`))
    .map((names) => names.join(' ↔ '));
  assert.deepEqual(
    mutual.filter((pair) => !mutualModules.includes(pair)),
    [],
  );
});

test('a module needs those only whose files it imports', () => {
  const imported = new Set(
    sources.flatMap(({ path, imports }) =>
      imports.map((to) => `${moduleOf(path)} ${moduleOf(to)}`),
    ),
  );
  const unused = modulesOfWaymark.flatMap(({ name, needs = [] }) =>
    needs.filter((needed) => !imported.has(`${name} ${needed}`)).map((one) => `${name}: ${one}`),
  );
  assert.deepEqual(unused, []);
});

test('no file imports itself by way of others', () => {
  const done = new Set<string>();
  const visit = (path: string, above: readonly string[]): void => {
    assert.ok(!above.includes(path), `circle: ${[...above, path].join(' → ')}`);
    if (done.has(path)) return;
    const { imports = [], loaded = [] } = byPath.get(path) ?? {};
    // A command of a module, loaded to run it, needs the list of all modules.
    const isCommand = (target: string): boolean =>
      path.endsWith('/module.ts') && loaded.includes(target);
    for (const target of imports) if (!isCommand(target)) visit(target, [...above, path]);
    done.add(path);
  };
  for (const path of byPath.keys()) visit(path, []);
});

/** The entries to the code: the command, the client, and the contract of modules of others. */
const entries = ['src/cli/cli.ts', clientPath, 'src/core/custom/contract.ts'];

test('every file is imported from the command line or the client, and every export is used', () => {
  const reached = new Set<string>();
  const reach = (path: string): void => {
    if (reached.has(path) || !byPath.has(path)) return;
    reached.add(path);
    byPath.get(path)?.imports.forEach(reach);
  };
  for (const path of entries) reach(path);
  assert.deepEqual(
    offenders(({ path }) => !reached.has(path)),
    [],
    'files that nothing imports',
  );
  const others = ['bench/**/*.ts', 'docs/**/*.ts'].flatMap(readSources);
  const users = [...sources, ...tests, ...others];
  const imported = new Set(users.flatMap(({ importedNames }) => importedNames));
  const unused = sources
    .filter(({ path }) => !entries.includes(path) && path !== generated)
    .filter(({ path }) => !imported.has(`${path}#*`))
    .flatMap(({ path, exported }) => exported.map((name) => `${path}#${name}`))
    .filter((name) => !imported.has(name));
  assert.deepEqual(unused, [], 'exports that no other file imports');
});

test('each exported type has a name of its own', () => {
  const byName = Map.groupBy(
    sources.flatMap(({ path, exportedTypes }) => exportedTypes.map((name) => ({ name, path }))),
    ({ name }) => name,
  );
  const twice = [...byName].flatMap(([name, places]) =>
    places.length > 1 ? [`${name}: ${places.map(({ path }) => path).join(', ')}`] : [],
  );
  assert.deepEqual(twice, []);
});

test('no line is wider than 100 columns', () => {
  const written = sources.filter(({ path }) => path !== generated);
  const wide = [...written, ...modules].flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, at) => (line.length > 100 ? [`${path}:${at + 1}`] : [])),
  );
  assert.deepEqual(wide, [], 'lines over 100 columns');
});

test('every export has a comment', () => {
  const missing = sources
    .filter(({ path }) => !path.endsWith('/limits.ts'))
    .flatMap(({ path, undocumented }) => undocumented.map((name) => `${path}: ${name}`))
    // The members of what a function needs say more than a sentence about all of them.
    .filter((name) => !name.endsWith('Parts'))
    // Limits of one thought stand below one sentence.
    .filter((name) => !/(?:Max|Min|Ms|Bytes|PerSecond)$/.test(name));
  assert.deepEqual(missing, []);
});

/** Where a module has its part of the database. */
const lmdbOutsideLog = [
  'src/modules/cache/storage/',
  'src/modules/upkeep/',
  'src/modules/visits/visit-database.ts',
  ...['cluster', 'drafts', 'nodes', 'rules', 'tables', 'webhooks'].map(
    (name) => `src/modules/${name}/log/`,
  ),
];

test('only the log and the storage of modules import lmdb, only the command line reads the process', () => {
  assert.deepEqual(
    offenders(
      ({ path, packages }) =>
        packages.includes('lmdb') &&
        roomOf(path) !== 'core/log' &&
        !lmdbOutsideLog.some((place) => path.startsWith(place)),
    ),
    [],
  );
  const sockets = ['node:http', 'node:https', 'node:http2', 'node:net', 'node:tls', 'ws'];
  // The functions that load a package of sockets.
  const loaders = ['src/core/values/lazy-packages.ts#loadWs'];
  const connected = ({ path, packages, importedNames }: Source) =>
    (packages.some((name) => sockets.includes(name)) ||
      importedNames.some((name) => loaders.includes(name))) &&
    !['core/server', 'core/pipeline', 'core/outbound'].includes(roomOf(path)) &&
    !['access', 'acme', 'peers', 'logs'].includes(moduleOf(path) ?? '') &&
    path !== 'src/core/values/lazy-packages.ts';
  assert.deepEqual(offenders(connected), []);
  // The program of acme_dns_hook gets the environment of the server.
  const passesOn = 'src/modules/acme/dns/dns-records.ts';
  const reads = ({ path, text }: Source) =>
    /\bprocess\.(?:argv|env)\b/.test(text) &&
    !['cli', 'main.ts'].includes(roomOf(path)) &&
    !usesCommandLine.test(path) &&
    path !== passesOn;
  assert.deepEqual(offenders(reads), []);
});

test('limits have names: a size is the value of a constant', () => {
  const wrong = sources
    .filter(({ path }) => !/\/(?:limits|units)\.ts$/.test(path))
    .flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, at) => {
        const isSize = /\b\d+ \* (?:1024|[KM]IB)\b/.test(line);
        return isSize && !/^(?:export )?const |^ {2}\w+: /.test(line) ? [`${path}:${at + 1}`] : [];
      }),
    );
  assert.deepEqual(wrong, []);
});

test('URLSearchParams reads no text of a client, which takes a second for %ff& in 256 KiB', () => {
  const reads = /\bsearchParams\b|\bnew URLSearchParams\((?!\)|others\b)/;
  assert.deepEqual(
    offenders(({ text }) => reads.test(text)),
    [],
  );
});

test('the code has no marks of unfinished work', () => {
  const marks = new RegExp(['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'for n' + 'ow\\b'].join('|'));
  const marked = [...sources, ...tests].filter(({ text }) => marks.test(text));
  assert.deepEqual(
    marked.map(({ path }) => path),
    [],
  );
});

test('the sources import every dependency', () => {
  const { dependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const used = new Set(sources.flatMap(({ packages }) => packages));
  const unused = Object.keys(dependencies).filter((name) => !used.has(name));
  assert.deepEqual(unused, []);
});

test('every reference to the docs leads to a heading that exists', () => {
  const anchorsOf = (file: string): ReadonlySet<string> => {
    const text = readFileSync(join(project, file), 'utf8');
    const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
    return new Set(
      headings.map((heading) =>
        heading
          .toLowerCase()
          .replace(/[^a-z0-9 -]/g, '')
          .replaceAll(' ', '-'),
      ),
    );
  };
  const broken = [...sources, ...tests, ...modules].flatMap(({ path, text }) =>
    [...text.matchAll(/(docs\/[a-z0-9/-]+\.md)(?:#([a-z0-9-]+))?/g)]
      .filter(([, file = '', anchor]) => {
        if (!existsSync(join(project, file))) return true;
        return anchor !== undefined && !anchorsOf(file).has(anchor);
      })
      .map(([reference]) => `${path}: ${reference}`),
  );
  assert.deepEqual(broken, []);
});

test('the map of the code and its invariants name only files that exist', () => {
  const files = [...sources, ...tests, ...readSources('docs/**/*.ts')].map(({ path }) => path);
  const pages = ['ARCHITECTURE.md', 'src/README.md', 'docs/design/invariants.md'];
  const missing = pages.flatMap((page) => {
    const text = readFileSync(join(project, page), 'utf8');
    return [...text.matchAll(/`([\w./-]+\.ts)`/g)]
      .map(([, name = '']) => name)
      .filter((name) => !files.some((file) => `/${file}`.endsWith(`/${name}`)))
      .map((name) => `${page}: ${name}`);
  });
  assert.deepEqual(missing, []);
});

test('comments name only files that exist', () => {
  const files = new Set(
    [
      ...sources,
      ...tests,
      ...modules,
      ...browser,
      ...readSources('{docs,bench,packaging}/**/*.ts'),
    ].map(({ path }) => `/${path}`),
  );
  const isThere = (name: string): boolean => [...files].some((file) => file.endsWith(`/${name}`));
  const comment = /^\s*(?:\/\/|\/?\*)/;
  const missing = sources.flatMap(({ path, text }) =>
    text
      .split('\n')
      .filter((line) => comment.test(line))
      .flatMap((line) => [...line.matchAll(/(?<![.\w])[\w-][\w./-]*\.ts\b/g)].map(([name]) => name))
      .filter((name) => !isThere(name))
      .map((name) => `${path}: ${name}`),
  );
  assert.deepEqual(missing, []);
});

test('no comment refers to a text that is not in this repository', () => {
  const foreign = [...sources, ...modules].filter(({ text }) =>
    /\bcontract §|\bseed \d+\.\d/.test(text),
  );
  assert.deepEqual(
    foreign.map(({ path }) => path),
    [],
  );
});
