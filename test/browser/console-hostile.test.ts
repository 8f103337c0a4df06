import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { oneBrowser, visit } from './browser.ts';
import { signIn } from './console-tab.ts';

const openTab = oneBrowser();

/** A page that a caller with the scope design can store, with a hostile script. */
const page = (path: string, content: string, contenttype = 'text/html') => ({
  ...{ path, kind: 'content', content, contenttype },
});

const started = startSite(
  { after },
  {
    rules: [
      page('/evil', '<h1>Evil</h1>'),
      page('/worker.js', 'self.addEventListener("fetch", () => {})', 'text/javascript'),
      page('/deep/er/worker.js', 'self.addEventListener("fetch", () => {})', 'text/javascript'),
    ],
  },
);

suite('a hostile page of the console’s origin', () => {
  test('has no use of the session: not by cookie, frame, window, storage or service worker', async (t) => {
    const { url, adminKey } = await started;
    const tab = await openTab(t, { locale: 'en-GB' });
    await signIn(tab, url, adminKey);

    const evil = await tab.page.context().newPage();
    await evil.goto(`${url}/evil`);
    assert.ok((await evil.context().cookies(`${url}/svc1/`)).length === 1);
    assert.equal(await evil.evaluate('document.cookie'), '');
    const statuses = await evil.evaluate(
      `Promise.all([
        fetch('/svc1/key/list', { credentials: 'include' }),
        fetch('/svc1/key/list', { method: 'POST', body: '{"v":{}}' }),
        fetch('/svc1/session/end', { method: 'POST', body: '{"v":{}}' }),
        fetch('/svc1/userinterface/insert', { method: 'POST', body: '{"v":{"path":"/x","kind":"content"}}' }),
      ]).then((all) => all.map(({ status }) => status))`,
    );
    assert.deepEqual(statuses, [401, 401, 404, 401]);
    assert.equal(await evil.evaluate('sessionStorage.length + localStorage.length'), 0);

    const framed = await evil.evaluate(
      `new Promise((resolve) => {
        const frame = document.createElement('iframe');
        frame.addEventListener('load', () => {
          try { resolve(frame.contentDocument?.querySelector('#console') ? 'read' : 'empty'); }
          catch { resolve('refused'); }
        });
        frame.src = '/svc1/console/';
        document.body.append(frame);
      })`,
    );
    assert.notEqual(framed, 'read');

    const popup = evil.waitForEvent('popup');
    await evil.evaluate(`window.opened = window.open('/svc1/console/')`);
    const opened = await popup;
    await opened.getByRole('heading', { name: 'Sign in' }).waitFor();
    const read = await evil.evaluate(
      `(() => { try { return window.opened.closed || window.opened.document.querySelector('#console') === null; } catch { return true; } })()`,
    );
    assert.equal(read, true, 'the window of the console is severed from its opener');
    assert.equal(await opened.evaluate('window.opener'), null);

    const register = (script: string) =>
      evil.evaluate(
        `navigator.serviceWorker.register('${script}').then(({ scope }) => scope, () => 'refused')`,
      );
    assert.equal(await register('/worker.js'), 'refused');
    assert.equal(await register('/deep/er/worker.js'), `${url}/deep/er/`);
  });

  test('cannot fix the session that a person gets', async (t) => {
    const { url, adminKey } = await started;
    const tab = await openTab(t, { locale: 'en-GB' });
    await visit(tab, `${url}/evil`);
    await tab.page.evaluate(
      `for (let at = 0; at < 4; at += 1) document.cookie = 'waymark_session_0000000' + at + '=planted; path=/svc1'`,
    );
    await signIn(tab, url, adminKey);
    const cookies = await tab.page.context().cookies(`${url}/svc1/`);
    const own = cookies.filter(({ httpOnly }) => httpOnly);
    assert.equal(own.length, 1);
    assert.equal(own[0]?.sameSite, 'Strict');
    assert.ok(
      !cookies.some(({ name, httpOnly }) => httpOnly && name.startsWith('waymark_session_0000000')),
    );
  });
});
