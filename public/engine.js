/*
 * Waymark's loader for generic pages (docs/design/rendering.md#generic-pages). A page includes it
 * once:
 *
 *     <script defer src="/svc1/engine.js"></script>
 *
 * It asks the server what stands behind the page's own address (get_render), and hands the answer
 * to the engine that the answer names: a function in `waymark.engines`,
 *
 *     waymark.engines.mine = async (answer, { element, setHtml, … }) => { … };
 *
 * or the export `render` of a module: that of the engine's `script` in the ini file, or one that
 * Waymark brings along. The page's element is #waymark, else [data-waymark], else its body. At the
 * end document gets `waymark:rendered` with the answer as its detail, or `waymark:failed`.
 * `waymark.refresh()` renders again if there is another answer; `?_live` does so by itself.
 */
(() => {
  // A page that includes it twice is rendered once. An element #waymark is window.waymark too.
  if (window.waymark?.engines !== undefined) return;

  const loader = document.currentScript ?? document.querySelector('script[src*="/svc1/engine.js"]');
  const base = loader.src.slice(0, loader.src.lastIndexOf('/svc1/engine.js'));
  const nonce = loader.nonce;
  const engines = Object.create(null);
  const answerMsMax = 30_000;
  const addressCharactersMax = 6_000; // with all around it, many servers take 8 KiB
  /** Language tags written from right to left: by their language, or by their script. */
  const rightToLeft =
    /^(ar|arc|ckb|dv|fa|he|nqo|ps|sd|syr|ug|ur|yi)(?!-[a-z]{4}\b)\b|-(adlm|arab|hebr|syrc|thaa)\b/i;
  const trusted = trustedTypes();
  const ownDirection = document.documentElement.dir;
  /** The answer that is shown, as text, and the last of the renderings that were asked for. */
  let shown;
  let untitled = false;
  let queue = first(ask());

  window.waymark = { base, nonce, engines, refresh };
  void queue.then(followChanges);

  /** What the server knows of this page's own origin, path and query. */
  async function ask() {
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
        cache: 'no-cache', // asks each time, and is content with a 304
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

  async function first(asked) {
    asked.catch(() => {}); // looked at below, when the page has been parsed
    await parsed();
    const title = document.querySelector('title[data-placeholder]');
    untitled = title !== null && title.textContent === title.dataset.placeholder;
    await show(asked, pageOf());
    // The place in the page that the address points at came too late for the browser.
    if (location.hash !== '') location.replace(location.href);
  }

  /** With `?_live` the page is shown anew when its rule changes. */
  async function followChanges() {
    if (!new URLSearchParams(location.search).has('_live')) return;
    const { follow } = await import(`${base}/svc1/live.js`);
    follow({ base, refresh });
  }

  /** Asks again, and renders again where the answer is another one; resolves when that is done. */
  function refresh() {
    queue = queue.then(() => show(ask(), pageOf()));
    return queue;
  }

  /** Shows an answer, or what is wrong; never rejects. */
  async function show(asked, page) {
    const { element } = page;
    element.setAttribute('aria-busy', 'true');
    try {
      const { answer, text } = await asked;
      if (text === shown) return;
      shown = text;
      await render(answer, page);
      nameUntitled(answer, element);
      finish('rendered', answer);
    } catch (thrown) {
      const failure = thrown.failure ?? { code: 'engine', cause: thrown };
      // A page that cannot be asked for anew is better than none.
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

  /** What an engine gets besides the answer. */
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
    const enginedata = answer.enginedata ?? {};
    if (typeof answer.lang === 'string') setLanguage(answer.lang);
    // The title of a template is a template.
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

  /** Makes a text the style that enginedata adds to the page; anything else takes it away. */
  function setCss(css) {
    document.querySelector('style[data-waymark-css]')?.remove();
    if (typeof css !== 'string') return;
    const style = tag('style', { nonce, textContent: css });
    style.dataset.waymarkCss = '';
    document.head.append(style);
  }

  /** The language of the page, and its direction where the page itself says none. */
  function setLanguage(lang) {
    const root = document.documentElement;
    root.lang = lang;
    if (ownDirection === '') root.dir = rightToLeft.test(lang) ? 'rtl' : '';
  }

  function setTitle(title) {
    if (typeof title === 'string') document.title = title;
  }

  /** Runs scripts in order, each when the one before it has run. */
  async function runScripts(scripts) {
    for (const script of scripts) await runScript(script);
  }

  /** Runs a URL or path as a script's source, other text as its code; resolves when it has run. */
  function runScript(script) {
    if (!/^(https?:\/\/|\/(?!\*)|\.\.?\/)\S*$/.test(script.trim())) {
      document.head.append(tag('script', { nonce, textContent: trusted.createScript(script) }));
      return undefined;
    }
    return new Promise((resolve) => {
      const src = trusted.createScriptURL(script.trim());
      const source = tag('script', { nonce, src, onload: resolve });
      source.onerror = () => {
        // Like a browser, which goes on with the scripts after one that is missing.
        console.error(`The script ${script} could not be loaded.`);
        resolve();
      };
      document.head.append(source);
    });
  }

  /** A page whose title only filled the time takes its first heading, or at least its address. */
  function nameUntitled({ enginedata }, element) {
    if (!untitled || typeof enginedata?.title === 'string') return;
    const heading = element.querySelector('h1, h2')?.textContent.trim();
    document.title = heading || location.host + location.pathname;
  }

  /**
   * How text becomes HTML, code and addresses under `require-trusted-types-for 'script'`: by the
   * policy `waymark`, where the page has such types.
   */
  function trustedTypes() {
    const rules = { createHTML: String, createScript: String, createScriptURL: String };
    try {
      return window.trustedTypes?.createPolicy('waymark', rules) ?? rules;
    } catch {
      return rules; // a policy of that name is not allowed here
    }
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
