import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { temporaryFolder, writeFiles } from '../folder.ts';
import { runWaymark } from '../process.ts';
import { runHere } from './here.ts';

/** The names under `Commands:` of a help page. */
function commandsOf(help: string): readonly string[] {
  const [, list = ''] = help.split('\nCommands:\n');
  return [...list.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name = '']) => name);
}

async function helpOf(words: readonly string[]): Promise<string> {
  const { code, out, err } = await runHere([...words, '--help']);
  assert.deepEqual([code, err], [0, ''], words.join(' '));
  return out;
}

suite('help', () => {
  test('has a page for every command, within 100 columns', async () => {
    let pages = 0;
    const visit = async (words: readonly string[]): Promise<void> => {
      const page = await helpOf(words);
      pages += 1;
      assert.match(page, new RegExp(`^Usage: ${['waymark', ...words].join(' ')} .+\n\n[A-Z]`));
      for (const line of page.split('\n')) assert.ok(line.length <= 100, line);
      for (const name of commandsOf(page)) {
        if (name !== 'help') await visit([...words, name]);
      }
    };
    await visit([]);
    assert.ok(pages > 35, `${pages} pages`);
  });

  test('is the same for `help`, `-h`, `--help` and no word at all', async () => {
    const [all, one] = [await helpOf([]), await helpOf(['rule', 'insert'])];
    for (const [words, page] of [
      [[], all],
      [['help'], all],
      [['-h'], all],
      [['help', 'rule', 'insert'], one],
      [['rule', 'insert', '-h'], one],
    ] as const) {
      assert.deepEqual([(await runHere(words)).out, words], [page, words]);
    }
  });
});

suite('a wrong command line', () => {
  test('gets the nearest word as a suggestion', async () => {
    for (const [words, message] of [
      ['rules', /^waymark: unknown command 'rules'\. Did you mean rule\?\n/],
      ['help rules', /Did you mean rule\?/],
      ['rule lst', /^waymark: unknown command 'lst'\. Did you mean list\?\n/],
      [
        'key list --apikey wmk_x',
        /^waymark: unknown option '--apikey': this command works on the data folder of this machine/,
      ],
      ['check --jsn', /^waymark: unknown option '--jsn'\. Did you mean --json\?\n/],
      ['rule list --kind contnt', /Did you mean content\? Write one of content, content\.fetch,/],
      ['key add --name n --scope raed', /Did you mean read\? Write one of render, read,/],
      ['explain / --device moblie', /Did you mean mobile\?/],
      ['completion bas', /Did you mean bash\?/],
      [
        'help insert',
        /'insert'\. Did you mean draft insert, event insert, hook insert, record insert, rule insert/,
      ],
      ['rotate h-1', /Did you mean hook rotate\?/],
    ] as const) {
      const { code, out, err } = await runHere(words.split(' '));
      assert.deepEqual([code, out], [2, ''], words);
      assert.match(err, message);
    }
  });

  test('gets the usage of its command', async () => {
    const { err } = await runHere(['hook', 'pause']);
    assert.equal(
      err,
      "waymark: missing required argument 'id'\n\n" +
        'Usage: waymark hook pause [options] <id>\n"waymark hook pause --help" shows all options.\n',
    );
    const purge = await runHere(['cache', 'purge', '--url', 'http://127.0.0.1:1']);
    assert.match(purge.err, /^waymark: name what to purge: a URL, --prefix, --rule or --all\.\n/);
    assert.match(purge.err, /\nUsage: waymark cache purge /);
  });
});

suite('the ini file', () => {
  test('is found in the usual places by every command', async (t) => {
    const folder = await temporaryFolder(t);
    const ini = (name: string) =>
      `[server]\nlisten = 127.0.0.1:1\ndata = data\n[node]\nname = ${name}\n`;
    await mkdir(join(folder, 'conf'));
    const used = async (words: readonly string[] = [], env: NodeJS.ProcessEnv = {}) => {
      const { out, err } = await runWaymark(['check', ...words], { cwd: folder, env });
      return /^name = (\w+)$/m.exec(out)?.[1] ?? err;
    };
    assert.match(
      await used(),
      /^waymark: there is no ini file in \.\/server\.ini, \.\/conf\/server\.ini, \/etc\/waymark\/server\.ini\./,
    );
    await writeFiles(folder, { 'conf/server.ini': ini('conf'), 'other.ini': ini('other') });
    assert.equal(await used(), 'conf');
    await writeFile(join(folder, 'server.ini'), ini('here'));
    assert.equal(await used(), 'here');
    assert.equal(await used([], { WAYMARK_CONFIG: 'other.ini' }), 'other');
    const words = ['--config', 'conf/server.ini'];
    assert.equal(await used(words, { WAYMARK_CONFIG: 'other.ini' }), 'conf');

    for (const line of ['key list', 'export', 'backup copy', 'rule list', 'explain /']) {
      const finished = await runWaymark(line.split(' '), { cwd: folder });
      assert.equal(finished.code, 1, line);
      assert.match(
        finished.err,
        /no data in .*data yet|No server answers at http:\/\/localhost:1\//,
      );
    }
    await rm(join(folder, 'server.ini'));
    await rm(join(folder, 'conf'), { recursive: true });
    const nowhere = await runWaymark(['rule', 'list'], { cwd: folder });
    assert.equal(nowhere.code, 2);
    assert.match(nowhere.err, /^waymark: there is no server to call\. Give --url http/);
  });
});

/** Whether a shell is installed. */
function has(shell: string): boolean {
  return spawnSync(shell, ['--version']).status === 0;
}

/** The words that a shell offers to complete a line, with the script that Waymark prints for it. */
async function offered(shell: 'bash' | 'zsh' | 'fish', line: string): Promise<readonly string[]> {
  const { out: script } = await runHere(['completion', shell]);
  const words = line.split(' ');
  const asked = {
    bash: `${script}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
_waymark; printf '%s\\n' "\${COMPREPLY[@]}"`,
    zsh: `compdef() { :; }; _describe() { print -rl -- "\${(@P)2%%:*}"; }; ${script}
words=(${words.map((word) => `'${word}'`).join(' ')}); CURRENT=${words.length}; _waymark`,
    fish: `${script}\ncomplete -C '${line}'`,
  }[shell];
  const { stdout, stderr } = spawnSync(shell, ['-c', asked], { encoding: 'utf8' });
  assert.equal(stderr, '');
  const typed = words.at(-1) ?? '';
  const all = stdout.split('\n').map((row) => row.split('\t')[0] ?? '');
  return all.filter((word) => word !== '' && word.startsWith(typed)).toSorted();
}

test('the manual page has every command', async () => {
  const { out } = await runHere(['manual']);
  assert.match(out, /^\.TH WAYMARK 1 /);
  for (const title of ['serve \\[options\\] \\[dir\\]', 'restart \\[options\\]', 'rule list']) {
    assert.match(out, new RegExp(`^\\.SS "waymark ${title}`, 'm'));
  }
  assert.doesNotMatch(out, /^(?!\.[A-Z])[.']/m, 'no text is taken for a request');
});

suite('completion', () => {
  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    test(
      `offers commands, options and values in ${shell}`,
      { skip: !has(shell) && `needs ${shell}` },
      async () => {
        assert.deepEqual(await offered(shell, 'waymark ru'), ['rule']);
        const lists = ['history', 'insert', 'invalidate', 'list'];
        const acts = await offered(shell, 'waymark rule ');
        for (const act of lists) assert.ok(acts.includes(act), `${acts.join(' ')}: ${act}`);
        assert.deepEqual(await offered(shell, 'waymark rule list --as'), ['--as-of']);
        assert.deepEqual(await offered(shell, 'waymark rule list --url x --as'), ['--as-of']);
        const kinds = await offered(shell, 'waymark rule list --kind c');
        assert.deepEqual(kinds, ['content', 'content.fetch']);
      },
    );
  }
});
