import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { runWaymark, serverFolder, startServed } from '../../process.ts';

/** Options of Node by which a package is not installed. */
function without(name: string): NodeJS.ProcessEnv {
  const hook = `
    import { registerHooks } from 'node:module';
    registerHooks({
      resolve(specifier, context, next) {
        if (specifier === ${JSON.stringify(name)}) {
          const error = new Error("Cannot find package '" + specifier + "' imported from here");
          throw Object.assign(error, { code: 'ERR_MODULE_NOT_FOUND' });
        }
        return next(specifier, context);
      },
    });`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` };
}

suite('a package that is not installed', () => {
  for (const [name, text, line, key] of [
    ['@opentelemetry/sdk-trace', '[telemetry]\nendpoint = http://127.0.0.1:1', 5, 'endpoint'],
    ['openid-client', '[login]\nissuer = https://id.example\nclient_id = a', 5, 'issuer'],
    ['@nats-io/transport-node', '[cluster]\nservers = nats://127.0.0.1:1', 5, 'servers'],
    ['@modelcontextprotocol/server', '[mcp]\nenabled = yes', 5, 'enabled'],
  ] as const) {
    test(`is named by check, with the line that needs it: ${name}`, async (t) => {
      const { iniFile } = await serverFolder(t, `${text}\n`);
      const words = ['check', '--config', iniFile];
      const { code, err } = await runWaymark(words, { env: without(name) });
      assert.equal(code, 1, err);
      const why = `needs the package ${name}, which is not here: npm install ${name}`;
      assert.ok(err.includes(`server.ini:${line}: \`${key}\` ${why}`), err);
      const started = await runWaymark(['serve', '--config', iniFile], { env: without(name) });
      assert.equal(started.code, 1);
      assert.ok(started.err.includes(why), started.err);
    });
  }

  test('is needed by its own settings only', async (t) => {
    const { iniFile } = await serverFolder(t, '');
    const names = ['@opentelemetry/sdk-trace', 'openid-client', '@modelcontextprotocol/server'];
    const envs = names.map((name) => without(name).NODE_OPTIONS).join(' ');
    const { url, adminKey } = await startServed(t, iniFile, { env: { NODE_OPTIONS: envs } });
    assert.equal((await fetch(`${url}/svc1/health`)).status, 200);
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
    const reply = await fetch(`${url}/svc1/mcp`, {
      method: 'POST',
      headers: { apikey: adminKey, 'content-type': 'application/json' },
      body: JSON.stringify(message),
    });
    assert.equal(reply.status, 503);
    assert.match(await reply.text(), /npm install @modelcontextprotocol\/server/);
  });

  test('is named by a command that needs it', async () => {
    const { code, err } = await runWaymark(['follow', '--help'], { env: without('pg') });
    assert.equal(code, 2);
    assert.match(err, /waymark follow needs the package pg: npm install pg/);
  });
});
