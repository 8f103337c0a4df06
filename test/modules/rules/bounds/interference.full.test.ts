import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';
import { bounds, inside, secret } from './world.ts';

const { origin } = inside;
const rule = 'svc1.userinterface';

/** A change of a site: by the admin or by the holder of a bound key. */
type Step =
  | { readonly kind: 'insert'; readonly by: By; readonly path: string; readonly content: string }
  | { readonly kind: 'edit'; readonly by: By; readonly at: number; readonly content: string }
  | { readonly kind: 'move'; readonly at: number; readonly path: string; readonly content: string }
  | { readonly kind: 'undo'; readonly by: By; readonly at: number; readonly rows: number };
type By = 'admin' | 'bound';

const ourPaths = ['/blog/a', '/blog/b', '/blog/*'];
const by = fc.constantFrom<By>('admin', 'bound');
const at = fc.nat({ max: 9 });
const word = fc.constantFrom('ours 1', 'ours 2', 'ours 3');
const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('insert' as const),
    ...{ by, content: word },
    path: fc.constantFrom(...ourPaths, `/${secret}/a`),
  }),
  fc.record({ kind: fc.constant('edit' as const), by, at, content: word }),
  fc.record({
    kind: fc.constant('move' as const),
    ...{ at, content: word },
    path: fc.constantFrom(...ourPaths, `/${secret}/b`, '/*'),
  }),
  fc.record({ kind: fc.constant('undo' as const), by, at, rows: fc.nat({ max: 4 }) }),
);

/** What a rule may hold while it is outside, and in no other state. */
const outerContent = `${secret} content`;

interface Walker {
  readonly site: TestSite;
  readonly keys: Readonly<Record<By, string>>;
  readonly ids: string[];
}

async function walk({ site, keys, ids }: Walker, step: Step): Promise<void> {
  const caller = 'by' in step ? step.by : 'admin';
  const call = (name: string, v: object): Promise<Answer> =>
    site.call(`${rule}.${name}`, v, { apikey: keys[caller] });
  if (step.kind === 'insert') {
    const isOurs = step.path.startsWith(inside.path);
    const content = isOurs ? step.content : outerContent;
    const { data } = await call('insert', { origin, path: step.path, content }).then((answer) => {
      assert.ok(caller === 'admin' || isOurs === (answer.error === undefined));
      return answer;
    });
    if (data !== undefined) ids.push(data.id as string);
    return;
  }
  const id = ids[step.at % Math.max(1, ids.length)];
  if (id === undefined) return;
  if (step.kind === 'undo') return undo(call, { id, rows: step.rows });
  const { data: now } = await site.call(`${rule}.read`, { id });
  const path = step.kind === 'move' ? step.path : (now?.path as string | undefined);
  const isInside = path?.startsWith(inside.path) === true;
  // A rule may lose its outer content before it comes in, and then comes in by its path alone.
  const isClean = isInside || step.content === 'ours 1';
  const content = isClean ? step.content : outerContent;
  const comesClean = isInside && !String(now?.content).includes(secret);
  if (step.kind === 'edit') await call('edit', { id, content });
  else await call('edit', { id, path, ...(!comesClean && { content }) });
}

/** Undoes the changes of a rule from one of its last rows on. */
async function undo(
  call: (name: string, v: object) => Promise<Answer>,
  { id, rows }: { readonly id: string; readonly rows: number },
): Promise<void> {
  const { data: history } = await call('read', { id });
  if (history === undefined) return;
  const from = String(Math.max(1, (history.seq as number) - rows));
  const { data } = await call('invalidate', { id, from });
  if (data !== undefined) await call('invalidate', { id, from, confirm: data.digest });
}

/** Everything that the holder of a key can read of the page rules. */
async function allOf({ site, keys, ids }: Walker): Promise<readonly Answer[]> {
  const call = (name: string, v: object, more = {}): Promise<Answer> =>
    site.call(`svc1.${name}`, v, { apikey: keys.bound, ...more });
  const { data: changes } = await call('change.list', { limit: 1000 });
  const answers: Answer[] = [{ data: changes }];
  const list = await site.call(`svc1.change.list`, {});
  const newest = (list.data.rows[0]?.seq as number | undefined) ?? 0;
  const moments = Array.from({ length: newest }, (_, seq) => String(seq + 1));
  for (const as_of of [undefined, ...moments]) {
    const then = as_of === undefined ? {} : { as_of };
    answers.push(await call('userinterface.list', then));
    answers.push(await call('userinterface.explain', { origin, path: '/blog/a', ...then }));
    answers.push(await call('userinterface.get', { origin, path: '/blog/a', ...then }));
    for (const id of ids) answers.push(await call('userinterface.read', { id, ...then }));
    for (const id of ids) {
      if (as_of !== undefined) {
        answers.push(await call('userinterface.invalidate', { id, from: as_of }));
        answers.push(await call('userinterface.invalidate', { id, from: as_of, until: as_of }));
      }
    }
  }
  for (const id of ids) answers.push(await call('userinterface.read', { id }, { qk: 'history' }));
  answers.push(await call('userinterface.tree', { origin, path: '/blog/', shadows: true }));
  return answers;
}

test('whatever happens, a bound key reads and undoes nothing that rules held outside', async (t) => {
  const scopes = ['render', 'read', 'design'];
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 4, maxLength: 12 }), async (all) => {
      const site = await startSite(t);
      const { data } = await site.call('svc1.key.insert', { name: 'b', scopes, ...bounds });
      const walker = {
        ...{ site, ids: [] },
        keys: { admin: site.adminKey, bound: data.key as string },
      };
      for (const step of all) await walk(walker, step);
      for (const answer of await allOf(walker)) {
        assert.notEqual(answer.error?.code, 'internal');
        assert.equal(JSON.stringify(answer).includes(secret), false, JSON.stringify(answer));
      }
      await site.waymark.stop(0);
    }),
    { numRuns: 60 },
  );
});
