import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { operations } from '../../../../src/modules.ts';
import { boundBehaviours } from '../../../../src/core/operations/bounds/operations.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../../src/core/values/json/json.ts';
import { isRuleInside, type Bounds } from '../../../../src/core/values/bounds.ts';
import type { Rule } from '../../../../src/modules/rules/rule.ts';
import { boundScopes } from '../../../../src/core/values/key.ts';
import type { Answer, TestSite } from '../../../harness.ts';
import { startFollower, untilEqual } from '../../nodes/rig.ts';
import { bounds, inside, secret, startWorld, type BoundedWorld } from './world.ts';

type Operation = (typeof operations)[number];
type Call = (name: string, v: object, more?: object) => Promise<Answer>;

/** Makes a function that calls with a key, and passes the packets of subscriptions on. */
type Connect = (
  site: TestSite,
  apikey: string,
  onPacket: (packet: Answer) => void,
) => Promise<Call>;

const packetNames = new Set(operations.flatMap(({ packets }) => packets?.r ?? []));

const overWebsocket: Connect = async (site, apikey, onPacket) => {
  const socket = await site.socket(apikey);
  socket.websocket.on('message', (data: Buffer) => {
    const answer = JSON.parse(data.toString()) as Answer;
    if (packetNames.has(answer.r ?? '')) onPacket(answer);
  });
  return (name, v, more) => socket.call(name, v, more);
};

const transports: Readonly<Record<string, Connect>> = {
  HTTP: (site, apikey) =>
    Promise.resolve((name, v, more) => site.call(name, v, { apikey, ...more })),
  websocket: overWebsocket,
  'websocket at a replica': overWebsocket,
  MCP: (site, apikey) => Promise.resolve((name, v, more) => callTool(site, apikey, name, v, more)),
};

const replica = { name: 'replica', ini: '[auth]\nanonymous =\n' };

/** Calls the tool of an operation, as clients of MCP do. */
async function callTool(
  site: TestSite,
  apikey: string,
  operation: string,
  v: object,
  more: object = {},
): Promise<Answer> {
  const name = operation.split('.').slice(1).join('_');
  const answer = await fetch(`${site.url}/svc1/mcp`, {
    method: 'POST',
    headers: {
      ...{ apikey, 'content-type': 'application/json' },
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({
      ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
      params: { name, arguments: { v, ...more } },
    }),
  });
  const sent = (await answer.text()).replace(/^event: message\ndata: /, '');
  const { result } = JSON.parse(sent) as { result: { content: readonly { text: string }[] } };
  const { text = '' } = result.content[0] ?? {};
  return JSON.parse(text.slice(text.indexOf('{'))) as Answer;
}

const boundsOfKeys = {
  'origin and path': bounds,
  path: { paths: [inside.path] },
  origin: { origins: [inside.origin] },
};

/** Each scope alone, and all together; fewer of them by HTTP and MCP, which are slower. */
const scopeSets = {
  HTTP: [boundScopes],
  MCP: [boundScopes],
  websocket: [...boundScopes.map((one) => [one]), boundScopes],
  'websocket at a replica': [boundScopes],
};

/** Values of input fields that name what is outside, and some of those that name what is inside. */
function valuesOf({
  theirs,
  ours,
  txn,
  left,
}: BoundedWorld): Readonly<Record<string, readonly unknown[]>> {
  const ids = [...Object.values(theirs), left];
  const drafts = [theirs.draft, theirs.published, `${secret} draft`];
  return {
    id: [...ids, ...Object.values(ours)],
    origin: [inside.origin, '*', 'https://two.example'],
    path: ['/blog/page', '/blog/filed.html', `/${secret}/left`, '/*', '/', '', '/blog/'],
    url: [`${inside.origin}/blog/page`, `${inside.origin}/${secret}/left`, `/${secret}`],
    urls: [`${inside.origin}/${secret}/left`, `${inside.origin}/blog/filed.html`],
    k: ['beyond', '/blog/on', '/blog/go'],
    keys: ['beyond', '/blog/on'],
    txn: [txn, theirs.publication],
    by: [theirs.colleague],
    draft: drafts,
    name: [`${secret} draft`, 'other'],
    table: [`${secret}rows`],
    hook: [theirs.hook],
    text: [secret],
    from_seq: [0],
    as_of: ['8', '20'],
    from: ['1'],
    confirm: ['digest'],
    apikey: ['wmk_none'],
    ndjson: [
      JSON.stringify({ origin: 'https://two.example', path: `/${secret}/n`, content: 'x' }),
      JSON.stringify({ ...inside, content: 'x', vk: `rule:${theirs.around ?? ''}` }),
      JSON.stringify({ a: 'svc1.table.insert', v: { name: `${secret}rows` } }),
    ],
    type: [`${secret}.made`],
    scopes: [['admin']],
    topics: [['changes']],
    sort: ['path', '-path', '-inserted'],
    role: [secret],
    limit: [1],
  };
}

/** Inputs of an operation: each value of each field, with the first ones of the required fields. */
function* inputsOf(
  { input }: { readonly input: JsonObject },
  values: ReturnType<typeof valuesOf>,
): Generator<JsonObject> {
  const properties = isJsonObject(input.properties) ? Object.keys(input.properties) : [];
  const fields = [...properties, 'id', 'origin', 'path', 'url', 'content'];
  const first = (name: string): unknown => values[name]?.[0] ?? 'x';
  const required = (input.required ?? []) as readonly string[];
  const least = Object.fromEntries(required.map((name) => [name, first(name)]));
  const place = properties.includes('origin') ? { origin: inside.origin } : {};
  yield least as JsonObject;
  for (const name of new Set(fields)) {
    for (const value of values[name] ?? []) {
      yield { ...place, ...least, [name]: value as Json };
    }
  }
}

/** The requests of an operation; one that is refused gets the same failure for all of them. */
function* requestsOf(
  operation: Operation,
  values: ReturnType<typeof valuesOf>,
): Generator<{ readonly v: JsonObject; readonly more: object }> {
  const { name, inDrafts } = operation;
  const drafted = inDrafts === true ? [{ draft: `${secret} draft` }] : [];
  const past = name.endsWith('.read') ? [{ qk: 'history' }] : [];
  for (const v of inputsOf(operation, values)) {
    for (const more of [{}, ...past, ...drafted]) yield { v, more };
    if (boundBehaviours[name] === 'refused') return;
  }
}

/** What an answer tells of the outside, besides what its request said. */
function told(answer: Answer, sent: object, { theirs }: BoundedWorld): readonly string[] {
  const [text, given] = [JSON.stringify(answer), JSON.stringify(sent)];
  return [secret, ...Object.values(theirs)].filter(
    (one) => text.includes(one) && !given.includes(one),
  );
}

/** Everything outside, as the admin sees it. */
async function outsideOf({ site, theirs }: BoundedWorld, bound: Bounds): Promise<string> {
  const rules = await site.call('svc1.userinterface.list', { limit: 1000 });
  const drafts = await site.call('svc1.draft.list', {});
  const parts = [
    ...(rules.data.rows as Rule[]).filter((rule) => !isRuleInside(bound, rule)),
    ...(drafts.data.rows as { id: string }[]).filter(({ id }) => id === theirs.draft),
  ];
  for (const family of ['webhook', 'table', 'key']) {
    parts.push((await site.call(`svc1.${family}.list`, {})).data.rows.length);
  }
  return JSON.stringify(parts);
}

suite('bounds × scopes × operations × transports', () => {
  for (const [bound, given] of Object.entries(boundsOfKeys)) {
    for (const [transport, connect] of Object.entries(transports)) {
      const isAtReplica = transport.endsWith('replica');
      // These run operations as the others do, and take several times as long.
      if ((transport === 'MCP' || isAtReplica) && given !== bounds) continue;
      test(`a key bound by ${bound} learns and changes nothing outside, by ${transport}`, async (t) => {
        const world = await startWorld(t, given);
        const site = isAtReplica ? await startFollower(t, world.site, replica) : world.site;
        const values = valuesOf(world);
        const calls: { readonly scopes: readonly string[]; readonly call: Call }[] = [];
        const packets: Answer[] = [];
        const onPacket = (packet: Answer): void => void packets.push(packet);
        for (const scopes of scopeSets[transport as keyof typeof scopeSets]) {
          const apikey = await world.key(scopes, given);
          if (isAtReplica) await untilEqual(world.site, site);
          calls.push({ scopes, call: await connect(site, apikey, onPacket) });
        }
        const before = await outsideOf(world, given);
        let answered = 0;
        for (const operation of operations) {
          const { name, effect } = operation;
          if (effect === 'streams' && connect !== overWebsocket) continue;
          for (const { v, more } of requestsOf(operation, values)) {
            for (const { scopes, call } of calls) {
              const answer = await call(name, v, more);
              const what = `${name} ${JSON.stringify({ v, ...more })} ${String(scopes)}`;
              const shown = () => `${what} ${JSON.stringify(answer).slice(0, 2000)}`;
              assert.deepEqual(told(answer, { v, more }, world), [], shown());
              assert.notEqual(answer.error?.code, 'internal', what);
              if (answer.error === undefined) answered += 1;
              assert.ok(boundBehaviours[name] !== 'refused' || answer.error !== undefined, what);
            }
          }
        }
        assert.ok(answered > 100);
        for (const packet of packets) assert.deepEqual(told(packet, {}, world), []);
        assert.equal(packets.length > 0, connect === overWebsocket);
        assert.equal(await outsideOf(world, given), before);
      });
    }
  }
});
