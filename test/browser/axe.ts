import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

const source = await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

interface Finding {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/**
 * Checks that axe-core finds no barrier on a page (WCAG 2.2 A and AA, and its best practices), by
 * all of its rules or by some.
 */
export async function assertOpenToAll(
  page: Page,
  what: string,
  rules?: readonly string[],
): Promise<void> {
  // The browser runs it itself, so the Content-Security-Policy of the page does not apply.
  // It stays in the document, so the screens that follow in the same document need no second copy.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(`${source}; undefined`);
  const { violations } = await page.evaluate<{ violations: readonly Finding[] }>(
    `axe.run(document, ${JSON.stringify({
      resultTypes: ['violations'],
      preload: false,
      ...(rules !== undefined && { runOnly: rules }),
    })})`,
  );
  const found = violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}\n${nodes.map(({ html, failureSummary }) => `  ${html}\n  ${failureSummary ?? ''}`).join('\n')}`,
  );
  assert.deepEqual(found, [], what);
}
