import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import {
  credentials,
  makeGenericClientConstructor,
  Metadata,
  Server,
  ServerCredentials,
  status,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientUnaryCall,
  type ClientWritableStream,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { startTlsSite, type TlsSite } from '../../core/server/tls/tls-rig.ts';

const method = (name: string, requestStream: boolean, responseStream: boolean) => ({
  path: `/echo.Echo/${name}`,
  ...{ requestStream, responseStream },
  requestSerialize: (value: string) => Buffer.from(value),
  requestDeserialize: (bytes: Buffer) => bytes.toString(),
  responseSerialize: (value: string) => Buffer.from(value),
  responseDeserialize: (bytes: Buffer) => bytes.toString(),
});

/** A service with the four kinds of calls. */
const service = {
  unary: method('unary', false, false),
  list: method('list', false, true),
  collect: method('collect', true, false),
  chat: method('chat', true, true),
  fail: method('fail', false, false),
};

const implementation: UntypedServiceImplementation = {
  unary(call: ServerUnaryCall<string, string>, done: sendUnaryData<string>) {
    const sent = new Metadata();
    sent.set('x-head', 'head');
    call.sendMetadata(sent);
    const trailers = new Metadata();
    trailers.set('x-trailer', String(call.metadata.get('x-own')));
    done(null, `echo ${call.request}`, trailers);
  },
  list(call: ServerWritableStream<string, string>) {
    for (let at = 0; at < 50; at += 1) call.write(`${call.request} ${at}`);
    call.end();
  },
  collect(call: ServerReadableStream<string, string>, done: sendUnaryData<string>) {
    let all = '';
    call.on('data', (text: string) => (all += text));
    call.on('end', () => {
      done(null, all);
    });
  },
  chat(call: ServerDuplexStream<string, string>) {
    call.on('data', (text: string) => call.write(`re: ${text}`));
    call.on('end', () => call.end());
  },
  fail(_call: ServerUnaryCall<string, string>, done: sendUnaryData<string>) {
    const metadata = new Metadata();
    metadata.set('x-why', 'because');
    done({ code: status.NOT_FOUND, details: 'no such thing', metadata });
  },
};

type Done = (error: ServiceError | null, value: string) => void;

/** A gRPC client. */
interface Client {
  unary(text: string, metadata: Metadata, done: Done): ClientUnaryCall;
  fail(text: string, done: Done): void;
  list(text: string): ClientReadableStream<string>;
  collect(done: Done): ClientWritableStream<string>;
  chat(): ClientDuplexStream<string, string>;
  close(): void;
}

/** A gRPC server behind Waymark, and a client of it. */
async function grpc(t: TestContext): Promise<{ readonly client: Client; readonly site: TlsSite }> {
  const server = new Server();
  server.addService(service, implementation);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  t.after(() => {
    server.forceShutdown();
  });
  const site = await startTlsSite(t, {
    tls: 'http_redirect = no',
    ini: `[proxy.grpc]\nhttp_version = 2\nsource = http://127.0.0.1:${port}\n`,
  });
  return { client: clientOf(t, site), site };
}

function clientOf(t: TestContext, site: TlsSite): Client {
  const EchoClient = makeGenericClientConstructor(service, 'echo.Echo');
  const ca = Buffer.from(site.authority.cert);
  const client = new EchoClient(`localhost:${site.tlsPort}`, credentials.createSsl(ca));
  t.after(() => {
    client.close();
  });
  return client as unknown as Client;
}

suite('gRPC through a proxy', () => {
  test('a unary call, with metadata in both directions and trailers', async (t) => {
    const { client } = await grpc(t);
    const metadata = new Metadata();
    metadata.set('x-own', 'mine');
    const result = Promise.withResolvers<string>();
    const call = client.unary('hello', metadata, (error, value) => {
      if (error === null) result.resolve(value);
      else result.reject(error);
    });
    const head = once(call, 'metadata') as Promise<[Metadata]>;
    const end = once(call, 'status') as Promise<[{ code: number; metadata: Metadata }]>;
    assert.equal(await result.promise, 'echo hello');
    assert.deepEqual((await head)[0].get('x-head'), ['head']);
    const [{ code, metadata: trailers }] = await end;
    assert.equal(code, status.OK);
    assert.deepEqual(trailers.get('x-trailer'), ['mine']);
  });

  test('a stream of the server', async (t) => {
    const { client } = await grpc(t);
    const got: string[] = [];
    for await (const text of client.list('n')) got.push(text as string);
    assert.deepEqual(
      got,
      Array.from({ length: 50 }, (_, at) => `n ${at}`),
    );
  });

  test('a stream of the client', async (t) => {
    const { client } = await grpc(t);
    const result = Promise.withResolvers<string>();
    const call = client.collect((error, value) => {
      if (error === null) result.resolve(value);
      else result.reject(error);
    });
    const big = 'x'.repeat(200_000);
    for (const text of ['a', big, 'b']) call.write(text);
    call.end();
    assert.equal(await result.promise, `a${big}b`);
  });

  test('streams of both, which go on in turns', async (t) => {
    const { client } = await grpc(t);
    const call = client.chat();
    for (const text of ['one', 'two', 'three']) {
      call.write(text);
      const [answer] = await once(call, 'data');
      assert.equal(answer, `re: ${text}`);
    }
    call.end();
    const [{ code }] = (await once(call, 'status')) as [{ code: number }];
    assert.equal(code, status.OK);
  });

  test('a call without TLS on the side of the client either', async (t) => {
    const { site } = await grpc(t);
    const EchoClient = makeGenericClientConstructor(service, 'echo.Echo');
    const plain = new EchoClient(`localhost:${site.port}`, credentials.createInsecure());
    t.after(() => {
      plain.close();
    });
    const got: string[] = [];
    for await (const text of (plain as unknown as Client).list('n')) got.push(text as string);
    assert.equal(got.length, 50);
  });

  test('an error status, with its details and metadata', async (t) => {
    const { client } = await grpc(t);
    const error = await new Promise<ServiceError | null>((resolve) => {
      client.fail('x', resolve);
    });
    assert.equal(error?.code, status.NOT_FOUND);
    assert.equal(error.details, 'no such thing');
    assert.deepEqual(error.metadata.get('x-why'), ['because']);
  });

  test('a call that the client cancels ends at the server', async (t) => {
    const server = await rawServer(t, (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    });
    const client = clientOf(t, await proxyTo(t, server.port));
    const call = client.list('n');
    call.on('error', () => undefined);
    await once(call, 'metadata');
    const closed = once(server.newest(), 'close');
    call.cancel();
    await closed;
  });

  test('half an answer is an error, and not the end of it', async (t) => {
    const server = await rawServer(t, (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
      stream.write(Buffer.from([0, 0, 0, 0, 5, 1, 2]));
      setImmediate(() => stream.destroy(new Error('broken')));
    });
    const client = clientOf(t, await proxyTo(t, server.port));
    const call = client.list('n');
    const [error] = (await once(call, 'error')) as [ServiceError];
    assert.notEqual(error.code, status.OK);
  });
});

/** An HTTP/2 server in the clear. */
async function rawServer(t: TestContext, answer: (stream: ServerHttp2Stream) => void) {
  let newest: ServerHttp2Stream | undefined;
  const server = createServer();
  server.on('stream', (stream: ServerHttp2Stream) => {
    newest = stream;
    stream.on('error', () => undefined);
    stream.resume();
    answer(stream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => sessions.add(session));
  t.after(async () => {
    for (const session of sessions) session.destroy();
    server.close();
    await once(server, 'close');
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    newest: () => {
      assert.ok(newest);
      return newest;
    },
  };
}

function proxyTo(t: TestContext, port: number): Promise<TlsSite> {
  return startTlsSite(t, {
    ini: `[proxy.app]\nhttp_version = 2\nsource = http://127.0.0.1:${port}\ncache = no\n`,
  });
}
