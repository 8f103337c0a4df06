import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serializeConfig, deserializeConfig } from '../../../src/cli/serve/worker-messages.ts';
import { cidrsContain } from '../../../src/core/values/network/cidr.ts';
import { readTestConfig } from '../../harness.ts';
import { serverFolder } from '../../process.ts';

test('a configuration is equal after serialization', async (t) => {
  const likeNetwork = { network: 'a', text: '10.0.0.1' };
  const schema = {
    type: 'object',
    properties: { network: { const: likeNetwork }, text: { const: { toString: 'x' } } },
    default: { network: 1, text: { toString: 1 } },
  };
  const { iniFile } = await serverFolder(
    t,
    'trust_proxy = 10.0.0.0/8, ::1\n[table.a]\nschema = a.json\n[disk.site]\nroot = site\n' +
      'redirects = _redirects\nheaders_file = _headers\n[redirect.a]\nfile = a.txt\n',
    {
      'a.json': JSON.stringify(schema),
      'site/_redirects': '/a /b\n',
      'site/_headers': '/a\n  X-A: b\n',
      'a.txt': '/c /d\n',
    },
  );
  const config = await readTestConfig(iniFile);
  const unpacked = deserializeConfig(serializeConfig(config), config.sections);
  assert.deepStrictEqual(unpacked, config);
  assert.equal(unpacked.redirects[0]?.fileText, '/c /d\n');
  assert.ok(cidrsContain(unpacked.server.trustProxy, '10.1.2.3'));
  assert.ok(Object.isFrozen(unpacked.server));
});
