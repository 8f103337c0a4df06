import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { noBody, type Reply } from '../../../src/core/http/reply.ts';
import {
  type StepPlace,
  type Step,
  createPipeline,
  places,
} from '../../../src/core/pipeline/pipeline.ts';
import { visit } from '../../modules/proxy/fetch-rig.ts';

const page: Reply = { status: 200, fields: [], body: noBody, source: 'rule:a' };

/** A step that notes its place, and goes on. */
function noting(at: StepPlace, passed: string[]): Step {
  return {
    at,
    handle(request, next) {
      passed.push(`${at} ${request.path}`);
      return next(request);
    },
    open(request, next) {
      passed.push(`open ${at}`);
      return next(request);
    },
    explain(request, next) {
      passed.push(`explain ${at}`);
      return next(request);
    },
  };
}

/** A step that answers `/page`. */
const answering: Step = {
  at: 'stored',
  handle: (request, next) => (request.path === '/page' ? page : next(request)),
};

/** The places that content passes, in the order in which their steps are called. */
const ofContent = ['freshness', ...places.slice(places.indexOf('access'), -2)] as const;

suite('the list of steps', () => {
  test('is in the order of its places, however the steps are given', () => {
    const passed: string[] = [];
    const given = places.map((at) => noting(at, passed)).toReversed();
    const site = createPipeline(() => given);
    assert.throws(() => site.respond(visit({ path: '/none' })), { code: 'not_found' });
    assert.deepEqual(
      passed,
      ofContent.map((at) => `${at} /none`),
    );
  });

  test('is the same for explain and for other protocols', () => {
    const passed: string[] = [];
    const site = createPipeline(() => places.map((at) => noting(at, passed)));
    assert.equal(site.explain(visit({ path: '/none' })).status, 404);
    const all = ['freshness', 'fields', ...places.slice(0, -2)];
    assert.deepEqual(
      passed,
      all.map((at) => `explain ${at}`),
    );
    passed.length = 0;
    assert.throws(() => site.open(visit({ path: '/none' })), { code: 'not_found' });
    assert.deepEqual(
      passed,
      all.map((at) => `open ${at}`),
    );
  });

  test('answers at once what is known at once', () => {
    const site = createPipeline(() => [answering, noting('disk', [])]);
    assert.deepEqual(site.respond(visit({ path: '/page' })), page);
  });

  test('keeps no 404 for others if a step may tell them apart', () => {
    const differing: Step = { at: 'preview', mayDiffer: true };
    const path = '/none';
    const ofAll = createPipeline(() => [answering]);
    assert.throws(() => ofAll.respond(visit({ path })), { isReusable: true });
    const ofOne = createPipeline(() => [answering, differing]);
    assert.throws(() => ofOne.respond(visit({ path })), { isReusable: undefined });
  });

  test('asks who may have the answer for each path inside the server', async () => {
    const passed: string[] = [];
    const site = createPipeline((inside) => [
      noting('access', passed),
      {
        at: 'rewrite',
        handle(request, next) {
          if (request.inside !== undefined) return next(request);
          return inside.handle({ ...visit({ path: '/page' }), inside: 'rewrite' });
        },
      },
      answering,
    ]);
    assert.deepEqual(await site.respond(visit({ path: '/old' })), page);
    assert.deepEqual(passed, ['access /old', 'access /page']);
  });

  test('leaves a path inside without an answer to the step that leads there', () => {
    const site = createPipeline((inside) => [
      {
        at: 'rewrite',
        handle(request, next) {
          if (request.inside !== undefined) return next(request);
          return inside.handle({ ...request, inside: 'rewrite' }) ?? page;
        },
      },
    ]);
    assert.deepEqual(site.respond(visit({ path: '/none' })), page);
  });
});
