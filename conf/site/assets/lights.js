// Runs before the page is painted, so that a shop left at dusk does not flash into daylight.
const lights = sessionStorage.getItem('lights');
if (lights === 'on' || lights === 'off') document.documentElement.dataset.lights = lights;
