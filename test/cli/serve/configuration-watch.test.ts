import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { configurationWatch } from '../../../src/cli/serve/configuration-watch.ts';
import type { ConfigResult } from '../../../src/core/config/config.ts';
import { watchConfig } from '../../../src/core/config/watch.ts';
import { testTasks } from '../../core/background/test-tasks.ts';
import { makeFolder, readIni } from '../../core/config/folder.ts';

const ini = (level: string) => `[server]\n[log]\nlevel = ${level}\n`;

test('a watch of the ini file that breaks begins again, and misses no change', async (t) => {
  const folder = await makeFolder(t, { 'server.ini': ini('info') });
  const file = join(folder, 'server.ini');
  const first = await readIni(file);
  assert.ok(first.ok);
  const levels: string[] = [];
  const begun: string[] = [];
  const whole = Promise.withResolvers<undefined>();
  let watches = 0;
  let reloads = 0;
  // Between two watches, somebody writes the file.
  const tasks = testTasks(undefined, async () => {
    await writeFile(file, ini(watches === 1 ? 'warn' : 'error'));
  });
  const watch = tasks.start(
    configurationWatch({
      config: first.config,
      results: ({ current, signal, watching }) => {
        watches += 1;
        if (watches === 1) throw new Error('ENOSPC: no more watches');
        const read = () => readIni(file, {}, { isReload: true });
        return watchConfig({ file, current, read, now: Date.now, signal, watching });
      },
      reload: (result: ConfigResult) => {
        assert.ok(result.ok);
        levels.push(result.config.log.level);
        reloads += 1;
        if (reloads === 1) throw new Error('the server cannot use it');
        whole.resolve(undefined);
      },
      began: () => {
        begun.push(`${watches}`);
      },
    }),
  );
  await whole.promise;
  assert.deepEqual(levels, ['warn', 'error']);
  // The start waits for the first of these only.
  assert.equal(begun[0], '1');
  assert.equal(tasks.states()[0]?.task, 'configuration_watch');
  await watch.stop();
});
