import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { cleaningAfterAll } from '../folder.ts';
import { startSite, type TestSite } from '../harness.ts';
import { httpSource } from '../core/outbound/sources.ts';
import { startReceiver } from '../modules/webhooks/receiver.ts';
import type { Page } from 'playwright-core';
import { oneBrowser, visit } from './browser.ts';
import { code, goTo, heading, hostile, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();
const script = 'javascript:window.hit=true';
const printable = hostile.replaceAll(' ', '&#32;');

/** A stored page that tries all that its preview in the console might allow. */
const page = `<!doctype html><title>Evil</title><p id="found">none</p><script>
const found = [];
const attempt = (name, run) => { try { run(); found.push(name); } catch {} };
attempt('document of the console', () => parent.document.title);
attempt('storage', () => sessionStorage.length);
attempt('cookie', () => document.cookie);
attempt('navigation', () => { if (parent !== self) top.location = '/evil'; else throw 0; });
attempt('service worker', () => { if (!navigator.serviceWorker) throw 0; });
attempt('window', () => { if (!window.open('/evil')) throw 0; });
parent.postMessage({ token: 'x', html: '<h1>hit</h1>', r: 'svc1.userinterface.change' }, '*');
fetch('/svc1/session/read').then(() => found.push('fetch'), () => {}).then(() => {
  document.querySelector('#found').textContent = 'found: ' + found.join();
});
</script>`;

interface Attacked {
  readonly site: TestSite;
  /** Another site with pages that send requests to the console's site. */
  readonly elsewhere: string;
  readonly ruleId: string;
  readonly hookId: string;
  readonly rowId: string;
  readonly breadcrumbId: string;
}

/** A site in which every field that may hold a text holds one that a browser would run. */
async function start(): Promise<Attacked> {
  const cleaning = cleaningAfterAll();
  const site = await startSite(cleaning, {
    ini:
      '[webhook]\nallow_private = 127.0.0.0/8\nretry = 1h\n' +
      '[fetch]\nallow_private = 127.0.0.0/8\n',
    rules: [
      { path: '/evil', kind: 'content', content: page, contenttype: 'text/html' },
      { path: '/w.js', kind: 'content', content: '1', contenttype: 'text/javascript' },
    ],
  });
  const elsewhere = await httpSource(cleaning, (_request, response) => {
    response.setHeader('Content-Type', 'text/html').setHeader('Cache-Control', 'max-age=600');
    response.setHeader('X-Answer', printable).end('<h1>Elsewhere</h1>');
  });
  const receiver = await startReceiver(cleaning);
  receiver.answer = () => (response) => {
    response.setHeader('X-Answer', printable);
    response.writeHead(500).end(hostile);
  };
  const call = async (name: string, v: object) => {
    const { data, error } = await site.call(`svc1.${name}`, v);
    assert.equal(error, undefined, `${name}: ${error?.message}`);
    return data;
  };
  const rule = await call('userinterface.insert', {
    ...{ path: `/${encodeURIComponent(code)}`, kind: 'content', content: hostile },
    ...{ enginecomments: hostile, contenttype: hostile, lang: hostile, origin: script },
    ...{ enginedata: { [code]: hostile }, engine: hostile, [code]: { [code]: hostile } },
  });
  await call('userinterface.edit', { id: rule.id, content: `${hostile}${hostile}` });
  const far = { path: '/far/*', kind: 'content.fetch' };
  await call('userinterface.insert', { ...far, enginedata: { source: `${elsewhere.origin}/*` } });
  const breadcrumb = await call('userinterface.insert', {
    ...{ path: hostile, kind: 'resolve' },
    enginedata: { target: '/', when: [{ if: { user: [hostile], role: code }, html: hostile }] },
  });
  await fetch(`${site.url}/svc1/userinterface.link.htm?k=${encodeURIComponent(hostile)}`, {
    headers: {
      'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
      referer: `http://${hostile}/`.replaceAll(' ', ''),
    },
    redirect: 'manual',
  });
  await fetch(`${site.url}/far/${encodeURIComponent(code)}?a=${encodeURIComponent(hostile)}`);
  await call('userinterface.insert', {
    ...{ path: 'trap', kind: 'resolve' },
    enginedata: { target: script, conditions: [{ target: script, user: [hostile] }] },
  });
  const hook = await call('webhook.insert', {
    ...{
      name: hostile,
      event: ['*'],
      url: `${receiver.url}?a=<img/src=x/onerror=window.hit=true>`,
    },
    ...{ headers: { 'X-Own': printable, Host: hostile }, filter: {}, table: [hostile] },
    [code]: hostile,
  });
  await call('event.insert', { type: 'made.up', data: { [code]: hostile }, counter: hostile });
  await receiver.until(1);
  await call('key.insert', { name: hostile, scopes: ['read'] });
  const node = { name: hostile, scopes: ['follow'], node: hostile };
  const { key: nodeKey } = await call('key.insert', node);
  const report = { node: hostile, role: 'counter', version: code, place: hostile, seq: 0, now: 0 };
  const reported = await site.call(
    'svc1.node.report',
    { ...report, waiting: 1, refused: 0, deliveries: {} },
    { apikey: nodeKey },
  );
  assert.deepEqual(reported.error, undefined);
  const text = { type: 'string', title: hostile, description: hostile };
  const schema = { type: 'object', title: hostile, properties: { sku: text, [code]: text } };
  await call('table.insert', { name: 'evil', key: 'sku', title: 'sku', schema });
  const row = await call('record.insert', { table: 'evil', sku: hostile, [code]: hostile });
  await fetch(`${site.url}/${encodeURIComponent(code)}`, {
    headers: { 'user-agent': printable, referer: `http://x.example/${printable}` },
  });
  const { origin } = elsewhere;
  return {
    ...{ site, elsewhere: origin, ruleId: rule.id, hookId: hook.id, rowId: row.id },
    breadcrumbId: breadcrumb.id,
  };
}

/** No stored text has run in a screen, none of its links is a script, and it has no image. */
async function assertInert(tab: Page, screen: string): Promise<void> {
  for (const summary of await tab.locator('summary').all()) await summary.click();
  const found = await tab.evaluate<readonly unknown[]>(`[window.hit,
    ...[...document.querySelectorAll('[href], [src], [action]')].filter((one) =>
      /^\\s*(?:javascript|data):/i.test(one.href ?? one.src ?? one.action)),
    ...document.querySelectorAll('main img')].filter((one) => one !== undefined)`);
  assert.deepEqual(found, [], screen);
}

suite('attacks on the console', () => {
  const attacked = start();

  async function signedIn(t: TestContext) {
    const all = await attacked;
    return { ...all, ...(await openConsole(t, openTab, all.site)) };
  }

  test('no stored text runs on any screen, nor is any link a script', async (t) => {
    const { page: tab, troubles, ruleId, hookId, rowId, breadcrumbId, site } = await signedIn(t);
    const { rows } = (await site.call('svc1.webhook.deliveries', { id: hookId })).data;
    const any = /./;
    for (const [hash, element] of [
      ['#/', '.recent li'],
      ['#/', '.anomalies .causes a'],
      ['#/pages', '.row'],
      ['#/pages?text=onerror', '.row'],
      [`#/pages/${ruleId}`, '.code .cm-editor'],
      ['#/history', '.changes li'],
      [`#/history?id=${ruleId}`, '.version'],
      [`#/explain?url=${encodeURIComponent(`/${code}`)}`, '.verdict'],
      ['#/explain?url=/trap', '.verdict'],
      ['#/webhooks', '.hook-card'],
      [`#/webhooks/${hookId}`, '.attempt'],
      [`#/webhooks/${hookId}/${rows[0].id}`, '.answers li'],
      [`#/webhooks/${hookId}/edit`, '.pair'],
      ['#/webhooks/send?type=made.up', '.field'],
      ['#/operations', '.table-list li'],
      ['#/operations/nodes', '.panel'],
      ['#/operations/configuration', '.ini-section'],
      ['#/operations/sources', '.grid tbody tr'],
      ['#/operations/cache', '.grid tbody tr'],
      ['#/history/past', '.past-slider'],
      ['#/breadcrumbs', '.row'],
      [`#/breadcrumbs/${breadcrumbId}`, '.branch'],
      [`#/breadcrumbs/${breadcrumbId}?part=visitors`, '.tried-branches li'],
      [`#/breadcrumbs/${breadcrumbId}?part=visits`, '.bars .bar'],
      [`#/breadcrumbs/${breadcrumbId}?part=code`, '.qr'],
      ['#/tables', '.cards li'],
      ['#/tables/evil', '.row'],
      ['#/tables/evil/definition', '.table-fields'],
      [`#/tables/evil/row/${rowId}`, '.fields input'],
      [`#/tables/evil/row/${rowId}`, '.version-list a'],
    ] as const) {
      await goTo(tab, hash, any);
      await tab.locator(element).first().waitFor();
      await assertInert(tab, hash);
    }
    // The preview of the rule requests its image, and explain finds no page.
    const isOfPages = (one: string): boolean => /ERR_BLOCKED|\/x\b|status 404/.test(one);
    assert.deepEqual(
      realTroubles({ troubles }).filter((one) => !isOfPages(one)),
      [],
    );
  });

  test('no text runs that comes while a person looks: log lines, an import, an undo', async (t) => {
    const { page: tab, site } = await signedIn(t);
    await goTo(tab, '#/operations/log', 'Access log');
    await tab.getByRole('main').getByText('Live', { exact: true }).waitFor();
    await fetch(`${site.url}/${code}?b=${hostile}`, {
      headers: { 'user-agent': printable, referer: `http://x.example/${printable}` },
    });
    await tab.locator('.log-line', { hasText: 'onerror' }).first().waitFor();
    await assertInert(tab, 'the access log');

    await goTo(tab, '#/tables/evil/transfer', /evil/);
    const lines = [{ sku: [hostile], [code]: hostile }, { [hostile]: hostile }];
    const ndjson = [...lines.map((one) => JSON.stringify(one)), hostile].join('\n');
    await tab.getByLabel('Lines of JSON', { exact: true }).fill(ndjson);
    await tab.getByRole('button', { name: 'Try the import' }).click();
    await tab.locator('.plan li').first().waitFor();
    await assertInert(tab, 'the report of an import');

    const { rows } = (await site.call('svc1.change.list', { limit: 1 })).data;
    await goTo(tab, `#/history?by=${rows[0].by}`, 'History');
    await tab.getByRole('button', { name: 'Revert …' }).click();
    await tab.locator('.plan li').first().waitFor();
    await assertInert(tab, 'the plan of an undo');
  });

  test('nothing runs in the view of a partner', async (t) => {
    const { site, hookId } = await attacked;
    const tab = await openTab(t, { locale: 'en-GB' });
    const { data } = await site.call('svc1.key.insert', {
      ...{ name: 'partner', scopes: [`verify:${hookId}`] },
    });
    await visit(tab, `${site.url}/svc1/console/#/partner/${hookId}?key=${data.key}`);
    await tab.page.locator('.attempt').first().click();
    await tab.page.locator('.answers li').first().waitFor();
    await assertInert(tab.page, 'the view of a partner');
  });

  test('no part of the URL runs or leads elsewhere', async (t) => {
    const { page: tab, site } = await signedIn(t);
    const text = encodeURIComponent(hostile);
    for (const hash of [
      `#/pages/${text}`,
      `#/pages?origin=${encodeURIComponent(script)}&path=${text}`,
      `#/pages?text=${text}&kind=${text}`,
      `#/pages/new?origin=${encodeURIComponent(script)}&path=${text}`,
      `#/history?id=${text}&seq=${text}`,
      `#/history?by=${text}&txn=${text}&from=${text}&until=${text}&action=${text}`,
      `#/explain?url=${text}&lang=${text}&device=${text}&at=${text}`,
      `#/explain?url=${encodeURIComponent(script)}`,
      `#/webhooks/${text}`,
      `#/webhooks/${text}/${text}`,
      `#/webhooks?state=${text}`,
      `#/webhooks/send?type=${text}`,
      `#/?last=__proto__`,
      `#/${text}`,
    ]) {
      await tab.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await tab.waitForLoadState('networkidle');
      await heading(tab, /./).catch(() => assert.fail(`${hash} shows nothing`));
      assert.equal(await tab.evaluate('window.hit'), undefined, hash);
      assert.ok(tab.url().startsWith(`${site.url}/svc1/console/#`), hash);
      assert.equal(await tab.locator('main img, [href^="javascript:" i]').count(), 0, hash);
    }
    await goTo(tab, '#/', 'Overview');
  });

  test('no text becomes HTML, script or code: the browser enforces Trusted Types', async (t) => {
    const { page: tab } = await signedIn(t);
    const results = await tab.evaluate<readonly string[]>(`(() => {
      const place = document.createElement('div');
      return [
        () => { place.innerHTML = '<b>'; },
        () => { place.insertAdjacentHTML('beforeend', '<b>'); },
        () => { document.write('<b>'); },
        () => { document.createElement('script').src = '/w.js'; },
        () => { document.createElement('script').text = '1'; },
        () => { document.createElement('iframe').srcdoc = '<b>'; },
        () => { new DOMParser().parseFromString('<b>', 'text/html'); },
        () => { trustedTypes.createPolicy('evil', {}); },
      ].map((run) => { try { run(); return 'done'; } catch (error) { return error.name; } });
    })()`);
    assert.deepEqual(
      results,
      Array.from({ length: 8 }, () => 'TypeError'),
    );
    const inline = await tab.evaluate(`new Promise((resolve) => {
      addEventListener('securitypolicyviolation', ({ effectiveDirective }) => resolve(effectiveDirective));
      const link = document.createElement('img');
      link.src = 'https://elsewhere.example/x';
      document.body.append(link);
    })`);
    assert.equal(inline, 'img-src');
  });

  test('the preview of a hostile page reaches neither the console nor the server', async (t) => {
    const { page: tab, site, troubles } = await signedIn(t);
    const { rows } = (await site.call('svc1.userinterface.list', { text: 'found: ' })).data;
    await goTo(tab, `#/pages/${rows[0].id}`, '/evil');
    await tab.frameLocator('.preview').getByText('found: ', { exact: false }).waitFor();
    const found = await tab.frameLocator('.preview').locator('#found').textContent();
    assert.equal(found, 'found: ');
    await heading(tab, '/evil');
    assert.equal(tab.context().pages().length, 1, 'no window was opened');
    assert.ok(troubles.some((one) => one.includes('connect-src') || one.includes('sandbox')));
  });

  test('a page that the console opens has no way back to it', async (t) => {
    const { page: tab, site } = await signedIn(t);
    const { rows } = (await site.call('svc1.userinterface.list', { text: 'found: ' })).data;
    await goTo(tab, `#/pages/${rows[0].id}`, '/evil');
    const opening = tab.context().waitForEvent('page');
    await tab.getByRole('link', { name: 'Open the page' }).click();
    const opened = await opening;
    await opened.waitForLoadState();
    assert.equal(await opened.evaluate('window.opener'), null);
    assert.equal(await opened.evaluate('document.referrer'), '');
  });

  test('forms and scripts of another site change nothing', async (t) => {
    const { page: tab, site, elsewhere } = await signedIn(t);
    const before = (await site.call('svc1.change.list', { limit: 1 })).data.rows[0].seq;
    const rule = '{"v":{"path":"/csrf","kind":"content","content":"x"}}';
    for (const origin of [elsewhere, site.url]) {
      const other = await tab.context().newPage();
      await other.goto(`${origin}/evil`);
      const insert = `${site.url}/svc1/userinterface/insert`;
      await other.evaluate(`Promise.all(['include', 'same-origin'].flatMap((credentials) =>
        ['text/plain', 'application/x-www-form-urlencoded'].map((type) =>
          fetch(${JSON.stringify(insert)}, { method: 'POST', mode: 'no-cors', credentials,
            headers: { 'content-type': type }, body: ${JSON.stringify(rule)} }).catch(() => {}))))`);
      await other.evaluate(`(() => {
        const form = document.createElement('form');
        form.method = 'post';
        form.action = ${JSON.stringify(insert)};
        for (const [name, value] of [['_v.path', '/csrf'], ['_v.kind', 'content'], ['_v.content', 'x']]) {
          const input = document.createElement('input');
          [input.name, input.value] = [name, value];
          form.append(input);
        }
        document.body.append(form);
        form.submit();
      })()`);
      await other.waitForURL(insert);
      await other.close();
    }
    const after = (await site.call('svc1.change.list', { limit: 1 })).data.rows[0].seq;
    assert.equal(after, before);
    assert.equal((await fetch(`${site.url}/csrf`)).status, 404);
  });

  test('no site frames the console', async (t) => {
    const { site, elsewhere } = await attacked;
    const tab = await openTab(t);
    for (const origin of [elsewhere, site.url]) {
      await tab.page.goto(`${origin}/evil`);
      for (const path of ['', '#/pages']) {
        const refused = tab.page.waitForEvent('console', {
          predicate: (message) => message.text().includes('frame-ancestors'),
        });
        await tab.page.evaluate(`(() => {
          const frame = document.createElement('iframe');
          frame.src = ${JSON.stringify(`${site.url}/svc1/console/${path}`)};
          document.body.append(frame);
        })()`);
        await refused;
      }
    }
  });

  test('a session that another page leaves in the storage is not used', async (t) => {
    const { site } = await attacked;
    const tab = await openTab(t, { locale: 'en-GB' });
    await tab.page.goto(`${site.url}/evil`);
    const planted = { token: 'wms_x', name: hostile, scopes: ['admin'], expires: '2999' };
    for (const text of [JSON.stringify(planted), '{', '{"scopes":1}']) {
      await tab.page.evaluate(`sessionStorage['waymark console reload'] = ${JSON.stringify(text)}`);
      await visit(tab, `${site.url}/svc1/console/`);
      await heading(tab.page, 'Sign in');
      assert.equal(await tab.page.evaluate('sessionStorage.length'), 0);
      // A page may even reload under the console's address; the text may still be anything.
      await tab.page.evaluate(`sessionStorage['waymark console reload'] = ${JSON.stringify(text)}`);
      await tab.page.reload();
      await heading(tab.page, 'Sign in');
      assert.equal(await tab.page.evaluate('window.hit'), undefined);
    }
  });

  test('no stored script becomes a service worker of the console', async (t) => {
    const { site } = await attacked;
    const tab = await openTab(t);
    await tab.page.goto(`${site.url}/evil`);
    const content = `/svc1/userinterface/get_content?_v.origin=${site.url}&_v.path=/w.js`;
    const asset = /assets\/[^"]+\.js/.exec(
      await (await fetch(`${site.url}/svc1/console/`)).text(),
    )?.[0];
    assert.ok(asset !== undefined);
    for (const [url, scope] of [
      ['/w.js', undefined],
      ['/w.js', '/svc1/console/'],
      ['/./w.js', '/svc1/'],
      [content, '/svc1/console/'],
      [content, '/svc1/'],
      [content, '/'],
      ['/svc1/console/preview.js', '/svc1/'],
      [`/svc1/console/${asset}`, '/svc1/console/'],
      ['data:text/javascript,1', '/svc1/console/'],
    ] as const) {
      const options = scope === undefined ? '' : `, { scope: ${JSON.stringify(scope)} }`;
      const registered = await tab.page.evaluate(
        `navigator.serviceWorker.register(${JSON.stringify(url)}${options})
          .then((one) => one.scope, () => 'refused')`,
      );
      assert.equal(registered, 'refused', `${url} for ${scope ?? 'its folder'}`);
    }
  });
});
