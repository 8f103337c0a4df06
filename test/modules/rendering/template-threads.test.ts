import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadPublicFiles } from '../../../src/modules/console/public-files.ts';
import { loadRendering } from '../../../src/modules/rendering/shared-rendering.ts';
import {
  TemplateError,
  TemplateThreads,
  rendersWaitingMax,
} from '../../../src/modules/rendering/template-threads.ts';
import { project } from '../../tidy/sources.ts';

const { modules, shared } = await loadRendering(await loadPublicFiles(join(project, 'public')));
const frame = '<!doctype html><title>t</title><main id="waymark"></main>';

function answerOf(enginedata: Readonly<Record<string, string>>) {
  const place = { origin: 'http://localhost', path: '/', lang: null, capture: null };
  return { ...place, enginedata, query: {}, user: null, rows: {} };
}

test('a template that never yields is stopped, and the next one gets a new thread', async (t) => {
  const threads = new TemplateThreads(modules, { renderMs: 1_000 });
  t.after(() => threads.close());
  // LiquidJS checks its limits between the parts of a template, not within filters.
  const sorted = '| sort_natural '.repeat(20);
  const slow = answerOf({ template: `{{ (1..900000) ${sorted}| size }}` });
  await assert.rejects(
    threads.page(frame, slow),
    (error) => error instanceof TemplateError && error.message.includes('longer than 1 s'),
  );
  assert.match(await threads.page(frame, answerOf({ template: '<h1>1</h1>' })), /<h1>1<\/h1>/);
});

test('the pages of one address leave a place in the line to another one', async (t) => {
  const threads = new TemplateThreads(modules);
  t.after(() => threads.close());
  const answer = answerOf({ template: '<h1>1</h1>' });
  const rendered: string[] = [];
  const page = (address: string): Promise<unknown> =>
    threads.turns.run({ keyId: undefined, address }, async () => {
      rendered.push(address);
      await threads.page(frame, answer);
    });
  const asked = Array.from({ length: rendersWaitingMax + 3 }, () => page('198.51.100.1'));
  const flood = Promise.allSettled(asked);
  await page('192.0.2.1');
  assert.deepEqual(rendered.slice(0, 2), ['198.51.100.1', '192.0.2.1']);
  const results = await flood;
  const refused = results.filter(({ status }) => status === 'rejected');
  assert.equal(refused.length, 2);
  const [{ reason }] = refused as [PromiseRejectedResult];
  assert.equal((reason as { limit?: string }).limit, 'renderings');
});

test('a page does not wait for the page that another address has rendered', async (t) => {
  const threads = new TemplateThreads(modules);
  t.after(() => threads.close());
  const ended = Promise.withResolvers<undefined>();
  const of = (address: string) => ({ keyId: undefined, address });
  const slow = threads.turns.run(of('198.51.100.1'), () => ended.promise);
  // A second one of the same address waits for its first one.
  const begun: string[] = [];
  const second = threads.turns.run(of('198.51.100.1'), () => Promise.resolve(begun.push('A')));
  const answer = answerOf({ template: '<h1>1</h1>' });
  await threads.turns.run(of('192.0.2.1'), async () => {
    begun.push('B');
    await threads.page(frame, answer);
  });
  assert.deepEqual(begun, ['B']);
  ended.resolve(undefined);
  await Promise.all([slow, second]);
});

test('a template gets only the variables that it mentions', () => {
  const templates = shared.templatesOf({
    template: '{{ query.a }}',
    title: '{{ path }}',
    partials: { a: '{{ users }} {{ capture }}' },
  });
  assert.deepEqual(shared.variablesOf(templates), ['query', 'capture', 'path']);
});
