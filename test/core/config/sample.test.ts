import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { project } from '../../tidy/sources.ts';
import { sections } from '../../ini.ts';

/** The lines of conf/server.ini by kind of section; `;` before a key comments it out. */
function linesByKind(text: string): ReadonlyMap<string, readonly string[]> {
  const lines = new Map<string, string[]>();
  let kind = '';
  for (const line of text.split('\n')) {
    const name = /^;?\[([^\]]+)\]/.exec(line)?.[1];
    if (name !== undefined) {
      const prefix = name.split('.')[0] ?? '';
      const named = Object.keys(sections).find((one) => one.startsWith(`${prefix}.<`));
      kind = name.includes('.') && !name.endsWith('.headers') ? (named ?? name) : name;
    }
    lines.set(kind, [...(lines.get(kind) ?? []), line]);
  }
  return lines;
}

const sample = linesByKind(readFileSync(join(project, 'conf/server.ini'), 'utf8'));

/** Keys with a sample value in the comment, because writing the default would be useless. */
const isOtherShown: ReadonlySet<string> = new Set(['[tls] acme_directory', '[tls.<host>] acme']);

test('conf/server.ini shows every key of the ini file, and keys in comments with their default', () => {
  const missing: string[] = [];
  const wrong: string[] = [];
  for (const [kind, keys] of Object.entries(sections)) {
    for (const [name, { defaultText }] of Object.entries(keys)) {
      const written = (sample.get(kind) ?? [])
        .map((line) => /^(;?)([a-z_]+)(?:\[\])? = ?(.*)$/.exec(line))
        .filter((match) => match?.[2] === name);
      if (written.length === 0) missing.push(`[${kind}] ${name}`);
      for (const match of written) {
        const [, comment, , value] = match ?? [];
        const hasDefault = defaultText !== undefined && defaultText !== '';
        if (isOtherShown.has(`[${kind}] ${name}`)) continue;
        if (comment === ';' && hasDefault && value !== defaultText) {
          wrong.push(`[${kind}] ${name}: ${value ?? ''}, but the default is ${defaultText}`);
        }
      }
    }
  }
  assert.deepEqual(missing, [], 'add these keys to conf/server.ini, with a comment');
  assert.deepEqual(wrong, [], 'show the defaults of these keys');
});
