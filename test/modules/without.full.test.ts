import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { temporaryFolder } from '../folder.ts';
import { project } from '../tidy/sources.ts';
import { copyWithout, removable, withThoseThatNeed } from './without.ts';

suite('without a module and those that need it', () => {
  for (const name of removable) {
    test(`${name}: the others build`, async (t) => {
      const folder = await temporaryFolder(t);
      await copyWithout(folder, withThoseThatNeed(name));
      const settings = { extends: './tsconfig.json', include: ['src'] };
      await writeFile(join(folder, 'tsconfig.src.json'), JSON.stringify(settings));
      const tsc = join(project, 'node_modules/.bin/tsc');
      const { stdout } = spawnSync(tsc, ['-p', 'tsconfig.src.json'], {
        cwd: folder,
        encoding: 'utf8',
      });
      assert.equal(stdout, '');
    });
  }
});
