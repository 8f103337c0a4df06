import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rawAsk, startServers } from '../../conformance/forms/answers.ts';
import { programForms } from '../../conformance/forms/forms.ts';
import { requireDocumented } from '../../conformance/forms/documented.ts';

test('Waymark answers what programs send as the documentation says', async (t) => {
  const servers = await startServers(t, { isAlone: true });
  assert.ok(programForms.length > 10);
  await requireDocumented('programs', programForms, { servers, ask: rawAsk });
});
