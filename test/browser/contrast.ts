import type { Page } from 'playwright-core';

/**
 * The weakest contrast of a page's text with the colours behind it (WCAG 2.2, 1.4.3): 1 for none,
 * 21 for black on white. It ignores background images.
 */
export function weakestContrast(page: Page): Promise<number> {
  return page.evaluate<number>(`(() => {
    const context = document
      .createElement('canvas')
      .getContext('2d', { willReadFrequently: true });
    // Colours are blended as the browser does, in any notation.
    const luminance = (colours) => {
      for (const colour of colours) {
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
      }
      const [red, green, blue] = [...context.getImageData(0, 0, 1, 1).data].map((value) => {
        const part = value / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const probe = document.body.appendChild(document.createElement('p'));
    probe.style.background = 'Canvas';
    const canvas = getComputedStyle(probe).backgroundColor;
    probe.remove();
    const behind = (element) =>
      element === null
        ? [canvas]
        : [...behind(element.parentElement), getComputedStyle(element).backgroundColor];
    const texts = [...document.querySelectorAll('main :is(h1, h2, p, a, li, td, dd, code, small)')];
    return Math.min(...texts.map((text) => {
      const ground = behind(text);
      const lights = [luminance(ground), luminance([...ground, getComputedStyle(text).color])];
      return (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05);
    }));
  })()`);
}
