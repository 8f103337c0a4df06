// The cord that lights the lamps, and the line at the foot of a page that says who answered.
(() => {
  const root = document.documentElement;
  const cord = document.querySelector('.cord');
  const dark = matchMedia('(prefers-color-scheme: dark)');

  function show() {
    const lit = (root.dataset.lights ?? (dark.matches ? 'on' : 'off')) === 'on';
    cord.setAttribute('aria-pressed', String(lit));
  }
  if (cord !== null) {
    cord.hidden = false;
    show();
    dark.addEventListener('change', show);
    cord.addEventListener('click', () => {
      root.dataset.lights = cord.getAttribute('aria-pressed') === 'true' ? 'off' : 'on';
      try {
        sessionStorage.setItem('lights', root.dataset.lights);
      } catch {
        // Without a storage, the next page does not know of it.
      }
      show();
    });
  }

  // The origin of the demo depends on the ports of its ini file.
  for (const link of document.querySelectorAll('a[data-own-origin]')) {
    link.search += `&_v.origin=${location.origin}`;
  }

  const reached = document.querySelector('.reached');
  function say(text, code) {
    const line = document.createElement('p');
    line.append(text, Object.assign(document.createElement('code'), { textContent: code }));
    reached?.append(line);
  }
  const [visit] = performance.getEntriesByType('navigation');
  const source = visit?.serverTiming?.find(({ name }) => name === 'waymark')?.description;
  if (source) say('The server itself says: ', source);
  document.addEventListener('waymark:rendered', ({ detail }) => {
    say(`Put in by the engine ${detail.engine}, from the rule `, detail.id);
  });
})();
