/*
 * Waymark's loader for generic pages (docs/design/rendering.md#generic-pages). A page includes it
 * once:
 *
 *     <script defer src="/svc1/engine.js"></script>
 *
 * It fetches the data of the page's own address (get_render), and passes it to the engine that the
 * answer names: a function in `waymark.engines`,
 *
 *     waymark.engines.mine = async (answer, { element, setHtml, … }) => { … };
 *
 * or the export `render` of a module: the engine's `script` in the ini file, or an engine of
 * Waymark. The page's element is #waymark, else [data-waymark], else its body. Afterwards, document
 * receives the event `waymark:rendered` with the answer as its detail, or `waymark:failed`.
 * `waymark.refresh()` fetches the data again and renders the page if it has changed; with `?_live`
 * the page does so after each change of its rule, and of the tables of its enginedata.rows.
 */
(() => {
  // Render once, even if the page includes this script twice. An element #waymark is also
  // window.waymark, so the check looks for a member.
  if (window.waymark?.engines !== undefined) return;

  const loader = document.currentScript ?? document.querySelector('script[src*="/svc1/engine.js"]');
  const base = loader.src.slice(0, loader.src.lastIndexOf('/svc1/engine.js'));
  const nonce = loader.nonce;
  const engines = Object.create(null);
  const answerMsMax = 30_000;
  const addressCharactersMax = 6_000; // many servers limit the whole head of a request to 8 KiB
  /** Matches the tags of languages that are written from right to left. */
  const rightToLeft =
    /^(ar|arc|ckb|dv|fa|he|nqo|ps|sd|syr|ug|ur|yi)(?!-[a-z]{4}\b)\b|-(adlm|arab|hebr|syrc|thaa)\b/i;
  const trusted = trustedTypes();
  const isLive = new URLSearchParams(location.search).has('_live');
  const ownDirection = document.documentElement.dir;
  /** The text of the rendered answer. */
  let shown;
  /** The names of the tables whose rows it shows. */
  let tables = [];
  let untitled = false;
  /** Renderings run one after the other: the promise of the last one. */
  let queue = renderFirst(fetchAnswer());

  window.waymark = { base, nonce, engines, refresh };
  void queue.then(followChanges);

  /** Fetches the data of this page's own origin, path and query. */
  async function fetchAnswer() {
    const place = new URLSearchParams({
      '_v.origin': location.origin,
      '_v.path': location.pathname,
      '_v.query': location.search,
    });
    const address = `${base}/svc1/userinterface/get_render`;
    const isLong = address.length + String(place).length > addressCharactersMax;
    let reply;
    try {
      reply = await fetch(isLong ? address : `${address}?${place}`, {
        ...(isLong && { method: 'POST', body: place }),
        headers: { Accept: 'application/json' },
        cache: 'no-cache', // revalidates each time; usually the answer is 304
        signal: AbortSignal.timeout(answerMsMax),
      });
    } catch {
      throw problem({ status: 0 });
    }
    const text = await reply.text().catch(() => '');
    const envelope = await new Response(text).json().catch(() => undefined);
    if (reply.ok && typeof envelope?.data === 'object' && envelope.data) {
      return { answer: envelope.data, text };
    }
    throw problem({ status: reply.ok ? 502 : reply.status, ...envelope?.error });
  }

  async function renderFirst(pending) {
    pending.catch(() => {}); // handled below, once the page has been parsed
    await parsed();
    const title = document.querySelector('title[data-placeholder]');
    const page = pageOf();
    const isRendered = page.element.hasAttribute('data-waymark-server');
    page.element.removeAttribute('data-waymark-server');
    untitled = title !== null && (isRendered || title.textContent === title.dataset.placeholder);
    // The browser reads the rows itself, to see which of them change later.
    await show(pending, { ...page, isRendered: isRendered && !isLive });
    // The browser could not scroll to the fragment before the content existed.
    if (location.hash !== '') location.replace(location.href);
  }

  /** With `?_live`, renders the page again when its rule, or a row of its tables, changes. */
  async function followChanges() {
    if (!isLive) return;
    const { follow } = await import(`${base}/svc1/live.js`);
    follow({ base, refresh, tables: () => tables });
  }

  /**
   * Fetches the data again, and renders it if it has changed, or if rows may have; resolves when
   * that is done.
   */
  function refresh({ rows = false } = {}) {
    queue = queue.then(() => {
      if (rows) shown = undefined;
      return show(fetchAnswer(), pageOf());
    });
    return queue;
  }

  /** Renders an answer, or shows why that failed; never rejects. */
  async function show(pending, page) {
    const { element } = page;
    element.setAttribute('aria-busy', 'true');
    try {
      const { answer, text } = await pending;
      if (text === shown) return;
      shown = text;
      tables = tablesOf(answer);
      await render(answer, page);
      nameUntitled(answer, element);
      finish('rendered', answer);
    } catch (thrown) {
      const failure = thrown.failure ?? { code: 'engine', cause: thrown };
      // Keep the rendered page if the server cannot be reached.
      if (failure.status === 0 && shown !== undefined) return;
      if (failure.code !== 'engine') shown = undefined;
      if (failure.cause !== undefined) console.error(failure.cause);
      if (!failure.shown) showMessage(failure, page);
      nameUntitled({}, element);
      finish('failed', failure);
    } finally {
      element.removeAttribute('aria-busy');
    }

    function finish(state, detail) {
      element.dataset.waymarkState = state;
      element.removeAttribute('aria-busy');
      document.dispatchEvent(new CustomEvent(`waymark:${state}`, { detail }));
    }
  }

  /** The names of the tables in enginedata.rows. */
  function tablesOf({ enginedata }) {
    const names = Object.values(enginedata?.rows ?? {}).map((input) => input?.table);
    return [...new Set(names.filter((name) => typeof name === 'string'))];
  }

  /** The second argument of an engine. */
  function pageOf() {
    const element =
      document.querySelector('#waymark') ??
      document.querySelector('[data-waymark]') ??
      document.body;
    return {
      element,
      base,
      nonce,
      trusted,
      setHtml: (html) => {
        element.innerHTML = trusted.createHTML(html);
      },
      setCss,
      setTitle,
      runScripts,
    };
  }

  /** Resolves after the page's deferred scripts, which may have added engines, have run. */
  function parsed() {
    if (document.readyState === 'complete') return undefined;
    return new Promise((resolve) => {
      document.addEventListener('DOMContentLoaded', resolve, { once: true });
      window.addEventListener('load', resolve, { once: true });
    });
  }

  /** Calls the engine; if it fails, shows the HTML of the answer, if there is any. */
  async function render(answer, page) {
    const enginedata = answer.enginedata ?? {};
    if (typeof answer.lang === 'string') setLanguage(answer.lang);
    // The engine `template` renders its title itself.
    if (answer.engine !== 'template') setTitle(enginedata.title);
    try {
      const engine = await findEngine(answer);
      await engine({ ...answer, enginedata }, page);
    } catch (thrown) {
      const isText = typeof enginedata.html === 'string' && enginedata.html.trim() !== '';
      if (isText) {
        setCss(enginedata.css);
        page.setHtml(enginedata.html);
      }
      throw problem({ code: 'engine', engine: answer.engine, cause: thrown, shown: isText });
    }
  }

  async function findEngine({ engine, script }) {
    if (engines[engine] === undefined) {
      const own = ['html', 'template', 'form'].includes(engine)
        ? `${base}/svc1/engines/${engine}.js`
        : undefined;
      const url = script ? new URL(script, loader.src).href : own;
      const module = url && (await import(url));
      engines[engine] ??= module?.render ?? module?.default;
    }
    if (typeof engines[engine] === 'function') return engines[engine];
    throw new Error(`There is no engine ${JSON.stringify(engine)} on this page.`);
  }

  /** Replaces the style element of enginedata; removes it if `css` is not a text. */
  function setCss(css) {
    document.querySelector('style[data-waymark-css]')?.remove();
    if (typeof css !== 'string') return;
    const style = tag('style', { nonce, textContent: css });
    style.dataset.waymarkCss = '';
    document.head.append(style);
  }

  /** Sets the page's language, and its direction unless the page has set one. */
  function setLanguage(lang) {
    const root = document.documentElement;
    root.lang = lang;
    if (ownDirection === '') root.dir = rightToLeft.test(lang) ? 'rtl' : '';
  }

  function setTitle(title) {
    if (typeof title === 'string') document.title = title;
  }

  /** Runs scripts one after the other. */
  async function runScripts(scripts) {
    for (const script of scripts) await runScript(script);
  }

  /** Loads a script from a URL or path, or runs other text as code; resolves when it has run. */
  function runScript(script) {
    if (!/^(https?:\/\/|\/(?!\*)|\.\.?\/)\S*$/.test(script.trim())) {
      document.head.append(tag('script', { nonce, textContent: trusted.createScript(script) }));
      return undefined;
    }
    return new Promise((resolve) => {
      const src = trusted.createScriptURL(script.trim());
      const source = tag('script', { nonce, src, onload: resolve });
      source.onerror = () => {
        // As browsers do, go on with the next script.
        console.error(`Cannot load the script ${script}.`);
        resolve();
      };
      document.head.append(source);
    });
  }

  /** Replaces a placeholder title by the first heading, or else by the address. */
  function nameUntitled({ enginedata }, element) {
    if (!untitled || typeof enginedata?.title === 'string') return;
    const heading = element.querySelector('h1, h2')?.textContent.trim();
    document.title = heading || location.host + location.pathname;
  }

  /**
   * The Trusted Types policy `waymark`, which a page with `require-trusted-types-for 'script'`
   * needs; plain functions in browsers without Trusted Types.
   */
  function trustedTypes() {
    const rules = { createHTML: String, createScript: String, createScriptURL: String };
    try {
      return window.trustedTypes?.createPolicy('waymark', rules) ?? rules;
    } catch {
      return rules; // the page's Content-Security-Policy does not allow the policy
    }
  }

  /** An Error with the failure that the visitor sees; status 0 means that no answer came. */
  function problem(failure) {
    return Object.assign(new Error(failure.message), { failure });
  }

  function wording({ status, code, engine }) {
    if (code === 'engine') {
      const name = engine ? `the engine “${engine}”` : 'an engine';
      return [
        'This page cannot be shown',
        `Waymark could not load ${name}, or it failed. The browser console has the details.`,
      ];
    }
    if (status === 0) {
      return ['The server cannot be reached', 'Check your connection, then try again.'];
    }
    if (status === 404) {
      return [
        'There is no page here',
        'Check the address: it may be mistyped, or the page may have moved.',
      ];
    }
    if (status === 401 || status === 403) {
      return ['You may not see this page', 'Sign in, or ask the operator of this site for access.'];
    }
    if (status === 429) return ['Too many requests', 'Wait a moment, then try again.'];
    return ['This page cannot be shown', 'The server reported an error. Try again in a moment.'];
  }

  /** Shows a message in place of the page: the problem, what to do, and the id of the error. */
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
