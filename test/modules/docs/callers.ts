import assert from 'node:assert/strict';
import type { Answer, TestSite } from '../../harness.ts';
import { checkAgainst, fetchDocument, type Document } from './documents.ts';

interface Envelope {
  readonly vk?: string;
  readonly qk?: string;
  readonly draft?: string;
}

/** Calls an operation, and checks request and answer by the documents. */
export type Call = (name: string, v?: object, more?: Envelope) => Promise<Answer>;

/** A caller over HTTP: each operation as JSON, and as a query string if that is documented. */
export async function overHttp(site: TestSite, apikey: string | undefined): Promise<Call> {
  const document = await fetchDocument(`${site.url}/svc1/openapi.json`);
  const check = checkAgainst(document);
  const headers: Record<string, string> = apikey === undefined ? {} : { apikey };
  const [{ url }] = document.servers;

  async function ask(path: string, method: 'get' | 'post', request: RequestInit, query = '') {
    const reply = await fetch(`${url}${path}${query}`, { ...request, headers, redirect: 'manual' });
    const { responses } = document.paths[path][method];
    const text = await reply.text();
    const status = responses[reply.status] === undefined ? 'default' : String(reply.status);
    assert.ok(status in responses, `${path}: ${reply.status} is not documented: ${text}`);
    const place = placeOf(document, ['paths', path, method, 'responses', status]);
    const { headers: documentedHeaders = {}, content } = at(document, place);
    const ownFields = ['ETag', 'WWW-Authenticate', 'Retry-After'];
    for (const name of ['Location', ...('*/*' in content ? [] : ownFields)]) {
      if (reply.headers.has(name)) assert.ok(name in documentedHeaders, `${path}: ${name}`);
    }
    if (reply.headers.get('content-type') !== 'application/json') {
      assert.ok('*/*' in content, `${path}: no envelope`);
      return { status: reply.status };
    }
    const answer = JSON.parse(text) as Answer;
    if (status === 'default') {
      const { description } = at(document, place);
      assert.ok(description.includes(`\`${answer.error?.code}\` (${reply.status})`), text);
    }
    check([...place, 'content', 'application/json', 'schema'], answer);
    return { status: reply.status, ...answer };
  }

  return async (name, v = {}, more = {}) => {
    const [path = ''] = Object.entries<Document>(document.paths)
      .filter(([, { post }]) => post.operationId === name)
      .map(([one]) => one);
    const body = { v, ...more };
    check(
      [...['paths', path, 'post', 'requestBody', 'content'], 'application/json', 'schema'],
      body,
    );
    const { get } = document.paths[path];
    if (get !== undefined) {
      const query = queryOf(v, more, get.parameters);
      const answer = await ask(path, 'get', {}, `?${query.toString()}`);
      assert.ok(answer.r === undefined || answer.r === name);
    }
    return ask(path, 'post', { method: 'POST', body: JSON.stringify(body) });
  };
}

/** The documented parameters of a GET for an input; fails for a field without one. */
function queryOf(
  v: object,
  { qk, draft }: Envelope,
  parameters: readonly Document[],
): URLSearchParams {
  const names = parameters.filter((one) => one.in === 'query').map(({ name }) => name as string);
  const sent = new URLSearchParams();
  const add = (parameter: string, name: string, value: unknown) => {
    assert.ok(names.includes(parameter), `${parameter} is no documented parameter`);
    sent.append(name, String(value));
  };
  for (const [name, value] of Object.entries(v)) {
    if (names.includes(name)) add(name, name, value);
    else if (typeof value !== 'object') add(`_v.${name}`, `_v.${name}`, value);
    else {
      for (const [member, one] of Object.entries(value as object)) {
        add(`_v.${name}`, `_v.${name}.${member}`, one);
      }
    }
  }
  if (qk !== undefined) add('_qk', '_qk', qk);
  if (draft !== undefined) add('_draft', '_draft', draft);
  return sent;
}

/** A caller over the websocket, which checks each packet. */
export async function overWebsocket(
  site: TestSite,
  apikey: string | undefined,
): Promise<Call & { readonly packet: () => Promise<Answer> }> {
  const document = await fetchDocument(`${site.url}/svc1/asyncapi.json`);
  const check = checkAgainst(document);
  const { operations, servers, channels } = document;
  assert.equal(`${servers.here.protocol}://${servers.here.host}`, site.url.replace('http', 'ws'));
  assert.equal(channels.ws.address, '/svc1/ws');
  const socket = await site.socket(apikey);
  const packets = Promise.withResolvers<Answer>();
  const isPacket = (r: unknown) => operations[String(r)]?.action === 'send';

  socket.websocket.on('message', (text: Buffer) => {
    const message = JSON.parse(text.toString()) as Answer;
    if (isPacket(message.r)) packets.resolve(message);
  });
  const messagesOf = (references: readonly { $ref: string }[]) =>
    references.map(({ $ref }) => [...$ref.split('/').slice(1), 'payload']);

  const call: Call = async (name, v = {}, more = {}) => {
    const { messages, reply } = operations[name];
    const [request = []] = messagesOf(messages);
    check(request, { a: name, v, ...more, id: 1 });
    const answer = await socket.call(name, v, more);
    const [success = [], failure = []] = messagesOf(reply.messages);
    check(answer.error === undefined ? success : failure, answer);
    return answer;
  };
  const packet = async () => {
    const message = await packets.promise;
    const [place = []] = messagesOf(operations[String(message.r)].messages);
    check(place, message);
    return message;
  };
  return Object.assign(call, { packet });
}

/** The place in a document, or the place that a reference there leads to. */
function placeOf(document: Document, place: readonly string[]): readonly string[] {
  const { $ref } = at(document, place) as { $ref?: string };
  return $ref === undefined ? place : $ref.split('/').slice(1);
}

function at(document: Document, place: readonly string[]): Document {
  return place.reduce<Document>((value, name) => value[name], document);
}
