import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { consistencySteps } from '../../../src/core/config/consistency.ts';
import { parseSteps } from '../../../src/core/config/parse.ts';
import { iniSections } from '../../../src/sections.ts';
import type { Steps } from '../../../src/core/fair/turns.ts';
import { parseIni } from '../../ini.ts';

const count = 2_000;

function iniOf(section: (at: number) => string): string {
  return `[server]\n${Array.from({ length: count }, (_, at) => section(at)).join('\n')}\n`;
}

/** Counts the steps of a piece of work, up to its end. */
function stepsOf<T>(work: Steps<T>): { readonly steps: number; readonly result: T } {
  for (let steps = 0; ; steps += 1) {
    const step = work.next();
    if (step.done === true) return { steps, result: step.value };
  }
}

/** The steps of the checks of an ini text that has no problem. */
function checksOf(text: string): number {
  const ini = parseIni(text, { env: {} });
  assert.deepEqual(ini.problems, []);
  const { steps, result } = stepsOf(consistencySteps(ini));
  assert.deepEqual(result, []);
  return steps;
}

suite('reading an ini file with thousands of sections', () => {
  test('may wait for the next turn after each section', () => {
    const text = iniOf((at) => `[redirect.r${at}]\npath = /a${at}\nto = /b`);
    const { steps } = stepsOf(parseSteps(text, { env: {}, sections: iniSections }));
    assert.ok(steps >= 3 * count, `${steps} steps`);
    assert.ok(checksOf(text) >= count);
  });

  const texts: Readonly<Record<string, (at: number) => string>> = {
    'of one path and many origins': (at) =>
      `[redirect.r${at}]\norigin = https://s${at}.example\npath = /*\nto = https://a.example/{splat}`,
    'of many paths': (at) => `[redirect.r${at}]\npath = /a/${at}/*\nto = /b/{splat}`,
    'in one long chain': (at) => `[redirect.r${at}]\npath = /${at}\nto = /${at + 1}`,
    'in one long chain from its end': (at) => `[redirect.r${at}]\npath = /${at + 1}\nto = /${at}`,
  };
  for (const [what, section] of Object.entries(texts)) {
    test(`compares redirects ${what} with few others`, () => {
      const steps = checksOf(iniOf(section));
      assert.ok(steps <= 10 * count, `${steps} steps`);
    });
  }

  test('ends the search for circles of thousands of patterns', () => {
    const steps = checksOf(iniOf((at) => `[redirect.r${at}]\nmatch = ^/a${at}$\nto = /b${at}`));
    assert.ok(steps <= 1_000_000 + 10 * count, `${steps} steps`);
  });
});
