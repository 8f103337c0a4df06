import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { configJson, describeConfig } from '../../../src/core/config/describe.ts';
import { fileKey, optional } from '../../../src/core/config/ini-key.ts';
import { iniSection, type IniSection } from '../../../src/core/config/ini-section.ts';
import { readConfig } from '../../../src/core/config/read.ts';
import { restartNeeded } from '../../../src/core/config/restart.ts';
import { anyText } from '../../../src/core/config/values.ts';
import { ineffectiveSettings } from '../../../src/core/config/warnings.ts';
import { iniSections } from '../../../src/sections.ts';
import { effectiveConfig } from '../../../src/modules/status/effective-configuration.ts';
import { makeFolder } from './folder.ts';

const text = { about: 'A text.', example: 'a' };

/** A section of somebody's own module, and a key of another section. */
const notice = iniSection({
  header: 'notice.<name>',
  keys: {
    text: optional(anyText, { ...text, restart: true }),
    password: optional(anyText, { ...text, isSecret: true }),
    file: fileKey({ ...text, holds: 'a notice' }),
  },
  place: 'notices',
  since: '0.3',
  check: (own) =>
    own.flatMap(({ name, line, values }) =>
      values.text === undefined ? [{ line, message: `[notice.${name}] needs \`text\`` }] : [],
    ),
  warnings: () => ['[notice] is old.'],
});
const noticeOfMcp = iniSection({
  header: 'mcp',
  keys: { notice: optional(anyText, { ...text, restart: true }) },
  place: 'mcp.more',
  since: '0.3',
});
const own: readonly IniSection[] = [...iniSections, notice, noticeOfMcp];

test('a list of sections may have further ones, which `check` knows as its own', async (t) => {
  const read = async (ini: string, sections: readonly IniSection[]) => {
    const files = { 'server.ini': `[server]\ndata = data\n${ini}`, 'site/x': '' };
    const file = join(await makeFolder(t, files), 'server.ini');
    const result = await readConfig({ file, sections, env: {}, cores: 1, hostName: 'here' });
    if (result.ok) return { config: result.config, problems: [] };
    return { config: undefined, problems: result.problems.map(({ message }) => message) };
  };
  const section = '[notice.a]\ntext = hello\npassword = s3cret\n[mcp]\nnotice = x\n';
  const { config } = await read(section, own);
  assert.ok(config);
  assert.match(describeConfig(config), /\[notice\.a\]\ntext = hello\npassword = s3cret\nfile =\n/);
  assert.match(describeConfig(config), /\[mcp\]\nenabled = yes\nnotice = x\n/);
  const notices: unknown = Reflect.get(config, 'notices');
  const expected = [{ name: 'a', text: 'hello', password: 's3cret', file: undefined }];
  assert.deepEqual(notices, expected);
  assert.deepEqual(configJson(config).notices, [{ ...expected[0], file: null }]);
  assert.ok(ineffectiveSettings(config).includes('[notice] is old.'));
  assert.doesNotMatch(JSON.stringify(await effectiveConfig(config)), /s3cret/);
  const changed = await read(section.replace('= x', '= y'), own);
  assert.ok(changed.config);
  assert.deepEqual(restartNeeded(config, changed.config), ['[server] data', '[mcp] notice']);

  assert.deepEqual((await read('[notice.a]\n', own)).problems, ['[notice.a] needs `text`']);
  assert.deepEqual((await read('[notice.a]\n', iniSections)).problems, [
    'unknown section `[notice.a]`',
  ]);
  const exposed = await read('[notice.a]\ntext = a\nfile = site/x\n[disk.a]\nroot = site\n', own);
  assert.deepEqual(exposed.problems, [
    '`root` = `site` contains a notice: serve a folder without it',
  ]);
});

test('two sections cannot have one key of one header', async (t) => {
  const file = join(await makeFolder(t, { 'server.ini': '[server]\n' }), 'server.ini');
  const sections = [...own, noticeOfMcp];
  const read = readConfig({ file, sections, env: {}, cores: 1, hostName: 'here' });
  await assert.rejects(read, /two sections have the key notice of \[mcp\]/);
});
