import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Command } from 'commander';
import { operations } from '../../../src/modules.ts';
import type { Terminal } from '../../../src/cli/command.ts';
import { recordCommand } from '../../../src/cli/remote/record-commands.ts';
import type { RevertibleFamily } from '../../../src/core/log/change.ts';
import { startSite } from '../../harness.ts';
import { runHere } from '../here.ts';

/** The families of operations that have a command. */
const commands: Readonly<Record<string, string>> = {
  userinterface: 'rule',
  webhook: 'hook',
  event: 'event',
  cache: 'cache',
};

/** Operations with a command of their own. */
const elsewhere = ['explain', 'import'];

suite('the command of a family', () => {
  test('has a subcommand for each operation that answers data over HTTP', async () => {
    for (const [family, command] of Object.entries(commands)) {
      const { out } = await runHere([command, '--help']);
      for (const { name, effect, replies } of operations) {
        const [, of, ...own] = name.split('.');
        const subcommand = own.join('-').replaceAll('_', '-');
        if (of !== family || effect === 'streams' || replies !== undefined) continue;
        if (elsewhere.includes(subcommand)) continue;
        assert.match(out, new RegExp(`^ {2}${subcommand} `, 'm'), name);
      }
    }
  });

  test('has the fields of an operation as arguments and options', async (t) => {
    const site = await startSite(t, {
      rules: [
        { path: '/a', kind: 'content', content: 'x', engine: 'html' },
        { path: 'summer', kind: 'resolve', enginedata: { target: '/lamps' } },
      ],
    });
    const env = { WAYMARK_URL: site.url, WAYMARK_APIKEY: site.adminKey };
    const render = ['rule', 'get-render', site.url, '/a'];
    const { code, out } = await runHere([...render, '--query', 'b=1'], { env });
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(out).query, { b: '1' });
    const resolved = await runHere(['rule', 'get-resolve', 'summer', '--json'], { env });
    assert.equal(JSON.parse(resolved.out).data.target, '/lamps');
    const missing = await runHere(['rule', 'get', site.url], { env });
    assert.match(missing.err, /missing required argument 'path'/);
    const failed = await runHere(['rule', 'get', site.url, '/b'], { env });
    assert.deepEqual([failed.code, failed.out], [1, '']);
    assert.match(failed.err, /^waymark: No page rule answers /);
  });

  test('follows from the description of a record family', () => {
    const command = new Command('lamp');
    const define = recordCommand({
      name: 'lamp' as RevertibleFamily,
      noun: 'lamp',
      command: 'lamp',
      list: {
        filters: { watts: { type: 'integer', description: 'The power.' } },
        matches: () => true,
        columns: { ID: 'id' },
      },
    });
    define(command, {} as Terminal);
    assert.deepEqual(
      command.commands.map((one) => one.name()),
      ['list', 'read', 'history', 'insert', 'edit', 'invalidate'],
    );
    assert.match(command.commands[0]?.helpInformation() ?? '', /--watts <watts> +the power\n/);
  });
});
