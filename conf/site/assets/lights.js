// Runs before the page is painted, so that a shop left at dusk does not flash into daylight.
// A browser may refuse the storage: in private windows, by its settings, or in a sandboxed frame.
try {
  const lights = sessionStorage.getItem('lights');
  if (lights === 'on' || lights === 'off') document.documentElement.dataset.lights = lights;
} catch {
  // The lights follow the time of day.
}
