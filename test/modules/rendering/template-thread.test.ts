import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadPublicFiles } from '../../../src/modules/console/public-files.ts';
import { rendersWaitingMax } from '../../../src/modules/rendering/limits.ts';
import { loadRendering } from '../../../src/modules/rendering/shared-rendering.ts';
import { TemplateError, TemplateThread } from '../../../src/modules/rendering/template-thread.ts';
import { project } from '../../tidy/sources.ts';

const { modules, shared } = await loadRendering(await loadPublicFiles(join(project, 'public')));
const frame = '<!doctype html><title>t</title><main id="waymark"></main>';

function answerOf(enginedata: Readonly<Record<string, string>>) {
  const place = { origin: 'http://localhost', path: '/', lang: null, capture: null };
  return { ...place, enginedata, query: {}, user: null, rows: {} };
}

test('a template that never yields is stopped, and the next one gets a new thread', async (t) => {
  const thread = new TemplateThread(modules, { renderMs: 1_000 });
  t.after(() => thread.close());
  // LiquidJS checks its limits between the parts of a template, not within filters.
  const sorted = '| sort_natural '.repeat(20);
  const slow = answerOf({ template: `{{ (1..900000) ${sorted}| size }}` });
  await assert.rejects(
    thread.page(frame, slow),
    (error) => error instanceof TemplateError && error.message.includes('longer than 1 s'),
  );
  assert.match(await thread.page(frame, answerOf({ template: '<h1>1</h1>' })), /<h1>1<\/h1>/);
});

test('too many pages at the same time are refused, and the others are rendered', async (t) => {
  const thread = new TemplateThread(modules);
  t.after(() => thread.close());
  const answer = answerOf({ template: '<h1>1</h1>' });
  const asked = Array.from({ length: rendersWaitingMax + 2 }, () => thread.page(frame, answer));
  const results = await Promise.allSettled(asked);
  const refused = results.filter(({ status }) => status === 'rejected');
  assert.equal(refused.length, 2);
  const [{ reason }] = refused as [PromiseRejectedResult];
  assert.equal((reason as { limit?: string }).limit, 'renderings');
});

test('a template gets only the variables that it mentions', () => {
  const templates = shared.templatesOf({
    template: '{{ query.a }}',
    title: '{{ path }}',
    partials: { a: '{{ users }} {{ capture }}' },
  });
  assert.deepEqual(shared.variablesOf(templates), ['query', 'capture', 'path']);
});
