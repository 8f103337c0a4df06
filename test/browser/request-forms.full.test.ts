import { test } from 'node:test';
import { browserAsk, startServers } from '../conformance/forms/answers.ts';
import { requireDocumented } from '../conformance/forms/documented.ts';
import { browserForms } from '../conformance/forms/forms.ts';
import { oneBrowser } from './browser.ts';

const openTab = oneBrowser();

test('Waymark answers what browsers send as the documentation says', async (t) => {
  const servers = await startServers(t, { isAlone: true });
  const ask = browserAsk((await openTab(t)).page);
  await requireDocumented('browsers', browserForms, { servers, ask });
});
