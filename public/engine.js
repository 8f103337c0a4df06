/*
 * Waymark's loader for generic pages (contract §6). A page includes it once:
 *
 *     <script defer src="/svc1/engine.js"></script>
 *
 * It asks the server what stands behind the page's own address (get_render), and hands the answer
 * to the engine that the answer names. Engines are functions by name in `waymark.engines`:
 *
 *     waymark.engines.mine = async (answer, { element, base, nonce }) => { … };
 *
 * or the export `render` of the module whose URL the answer gives as `script`. The page's element
 * is #waymark, else [data-waymark], else its body. When all is done `waymark:rendered` is dispatched
 * on document with the answer as its detail; `waymark:failed` when something went wrong.
 */
(() => {
  // A page that includes it twice is rendered once. An element #waymark is window.waymark too.
  if (window.waymark?.engines !== undefined) return;

  const loader = document.currentScript ?? document.querySelector('script[src*="/svc1/engine.js"]');
  const base = loader.src.slice(0, loader.src.lastIndexOf('/svc1/engine.js'));
  const nonce = loader.nonce;
  const engines = Object.assign(Object.create(null), { html: renderHtml });
  const answerMsMax = 30_000;

  window.waymark = { base, nonce, engines };
  start(askRender());

  /** What the server knows of this page's own origin, path and query. */
  async function askRender() {
    const place = new URLSearchParams({
      '_v.origin': location.origin,
      '_v.path': location.pathname,
      '_v.query': location.search.slice(1),
    });
    let reply;
    try {
      reply = await fetch(`${base}/svc1/userinterface/get_render?${place}`, {
        headers: { Accept: 'application/json' },
        cache: 'no-cache', // asks each time, and is content with a 304
        signal: AbortSignal.timeout(answerMsMax),
      });
    } catch {
      throw problem({ status: 0 });
    }
    const envelope = await reply.json().catch(() => null);
    if (reply.ok && typeof envelope?.data === 'object' && envelope.data) return envelope.data;
    throw problem({ status: reply.ok ? 502 : reply.status, ...envelope?.error });
  }

  async function start(asked) {
    asked.catch(() => {}); // looked at below, when the page has been parsed
    await parsed();
    const element =
      document.querySelector('#waymark') ??
      document.querySelector('[data-waymark]') ??
      document.body;
    const page = { element, base, nonce };
    element.setAttribute('aria-busy', 'true');
    try {
      const answer = await asked;
      if (typeof answer.lang === 'string') document.documentElement.lang = answer.lang;
      if (typeof answer.enginedata?.title === 'string') document.title = answer.enginedata.title;
      await render(answer, page);
      nameUntitled(element);
      followFragment();
      finish('rendered', answer);
    } catch (thrown) {
      const failure = thrown.failure ?? { code: 'engine', cause: thrown };
      if (failure.cause !== undefined) console.error(failure.cause);
      if (!failure.shown) showMessage(failure, page);
      nameUntitled(element);
      finish('failed', failure);
    }

    function finish(state, detail) {
      element.removeAttribute('aria-busy');
      element.dataset.waymarkState = state;
      document.dispatchEvent(new CustomEvent(`waymark:${state}`, { detail }));
    }
  }

  /** Deferred scripts of the page have run by then, so engines that they add are there. */
  function parsed() {
    if (document.readyState === 'complete') return undefined;
    return new Promise((resolve) => {
      document.addEventListener('DOMContentLoaded', resolve, { once: true });
      window.addEventListener('load', resolve, { once: true });
    });
  }

  /** Lets the named engine render; where it cannot, the answer's HTML is better than a message. */
  async function render(answer, page) {
    try {
      const engine = await findEngine(answer);
      await engine({ ...answer, enginedata: answer.enginedata ?? {} }, page);
    } catch (thrown) {
      const shown = showHtml(answer.enginedata ?? {}, page);
      throw problem({ code: 'engine', engine: answer.engine, cause: thrown, shown });
    }
  }

  async function findEngine({ engine, script }) {
    if (engines[engine] === undefined && script) {
      const module = await import(new URL(script, document.baseURI).href);
      engines[engine] ??= module.render ?? module.default;
    }
    if (typeof engines[engine] === 'function') return engines[engine];
    throw new Error(`There is no engine ${JSON.stringify(engine)} on this page.`);
  }

  /** The engine `html`: enginedata's css and html, then its scripts in order, once each. */
  async function renderHtml({ enginedata }, page) {
    const { scripts = [] } = enginedata;
    if (!showHtml(enginedata, page) && scripts.length === 0) {
      throw new Error('enginedata has neither html nor scripts.');
    }
    for (const script of scripts) await runScript(script);
  }

  /** Puts enginedata's css and html into the page; returns whether there is anything to see. */
  function showHtml({ html, css }, { element }) {
    document.querySelector('style[data-waymark-css]')?.remove();
    if (typeof css === 'string') {
      const style = tag('style', { nonce, textContent: css });
      style.dataset.waymarkCss = '';
      document.head.append(style);
    }
    if (typeof html !== 'string' || html.trim() === '') return false;
    element.innerHTML = html;
    return true;
  }

  /** Runs a URL or path as a script's source, other text as its code; resolves when it has run. */
  function runScript(script) {
    if (!/^(https?:\/\/|\/(?!\*)|\.\.?\/)\S*$/.test(script.trim())) {
      document.head.append(tag('script', { nonce, textContent: script }));
      return undefined;
    }
    return new Promise((resolve) => {
      const source = tag('script', { nonce, src: script.trim(), onload: resolve });
      source.onerror = () => {
        // Like a browser, which goes on with the scripts after one that is missing.
        console.error(`The script ${script} could not be loaded.`);
        resolve();
      };
      document.head.append(source);
    });
  }

  /** What came too late for the browser: the place in the page that the address points at. */
  function followFragment() {
    if (location.hash !== '') location.replace(location.href);
  }

  /** A page whose title only filled the time takes its first heading, or at least its address. */
  function nameUntitled(element) {
    const title = document.querySelector('title[data-placeholder]');
    if (title === null || title.textContent !== title.dataset.placeholder) return;
    const heading = element.querySelector('h1, h2')?.textContent.trim();
    document.title = heading || location.host + location.pathname;
  }

  /** An error whose `failure` says what a visitor is told; its status is 0 where no answer came. */
  function problem(failure) {
    return Object.assign(new Error(failure.message), { failure });
  }

  function wording({ status, code, engine }) {
    if (code === 'engine') {
      const name = engine ? `the engine “${engine}”` : 'an engine';
      return [
        'This page cannot be shown',
        `It needs ${name}, which is missing here or can make nothing of what it was given.`,
      ];
    }
    if (status === 0) {
      return ['The server cannot be reached', 'Check your connection, then try again.'];
    }
    if (status === 404) {
      return [
        'There is no page here',
        'The address may be mistyped, or the page has gone somewhere else.',
      ];
    }
    if (status === 401 || status === 403) {
      return [
        'This page is not open to you',
        'Signing in may help, or asking whoever runs the site.',
      ];
    }
    if (status === 429) return ['Too many requests', 'Wait a little, then try again.'];
    return [
      'This page could not be put together',
      'The server had a problem. Try again in a moment.',
    ];
  }

  /** Shows a message in place of the page: what is wrong, what to do, and the id to quote. */
  function showMessage({ id, message, ...failure }, { element }) {
    const [title, advice] = wording(failure);
    const box = tag('div', { className: 'waymark-message', role: 'alert' });
    box.append(tag('h1', { textContent: title }), tag('p', { textContent: advice }));
    if (message) box.append(tag('p', { textContent: `The server says: ${message}` }));
    if (id) {
      const quote = tag('p', { textContent: 'If you report this, quote ' });
      quote.append(tag('code', { textContent: id }));
      box.append(quote);
    }
    const again = tag('button', { type: 'button', textContent: 'Try again' });
    again.addEventListener('click', () => location.reload());
    box.append(again);
    element.replaceChildren(box);
  }

  function tag(name, properties) {
    return Object.assign(document.createElement(name), properties);
  }
})();
