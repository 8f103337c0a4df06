import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';

/** Every way from one to another of 320, 390, 720 and 1440 CSS pixels, from 1440 on. */
export const everyWay = [320, 390, 720, 1440, 720, 320, 1440, 390, 320, 720, 390, 1440] as const;

/** The same windows at a zoom of 200 %; that of 1440 has 720, which is above. */
export const zoomed = [360, 195, 160] as const;

/**
 * Lets a test hold the observers of a page back, so that it measures the first frame after a change
 * of the window, before a script of the page can mend its layout.
 */
const holdable = `(() => {
  const late = [];
  let isHeld = false;
  window.ResizeObserver = class extends ResizeObserver {
    constructor(callback) {
      super((...given) => {
        if (isHeld) late.push(() => callback(...given));
        else callback(...given);
      });
    }
  };
  window.holdObservers = (held) => {
    isHeld = held;
    if (!held) for (const run of late.splice(0)) run();
  };
})()`;

/**
 * Runs in a page: what reaches out of the window, and which chart, table, code block or control out of
 * its container. What is in a container that scrolls or cuts is inside.
 */
const tooWide = `(() => {
  const blocks = 'figure, canvas, table, pre, code, iframe, svg, img, input, select, textarea, button';
  const { scrollWidth, clientWidth } = document.documentElement;
  const nameOf = ({ localName, classList }) => [localName, ...classList].join('.');
  const isContained = (one) => {
    for (let box = one.parentElement; box !== null && box !== document.body; box = box.parentElement)
      if (getComputedStyle(box).overflowX !== 'visible') return true;
    return false;
  };
  const containerOf = (one) => {
    let box = one.parentElement;
    while (/^(inline|contents)$/.test(getComputedStyle(box).display)) box = box.parentElement;
    return box;
  };
  const found = scrollWidth > clientWidth ? ['the page: ' + scrollWidth + ' of ' + clientWidth] : [];
  for (const one of document.body.querySelectorAll('*')) {
    const { left, right, width } = one.getBoundingClientRect();
    // What is left of the window is for screen readers and robots.
    if (width === 0 || right <= 0) continue;
    const isBlock = one.matches(blocks) && getComputedStyle(one).position === 'static';
    const around = isBlock ? containerOf(one).getBoundingClientRect() : { left: 0, right: clientWidth };
    if (left > around.left - 1 && right < around.right + 1) continue;
    if (isContained(one)) continue;
    found.push(nameOf(one) + ': ' + [left, right].map(Math.round).join(' to ') + ' of '
      + [around.left, around.right].map(Math.round).join(' to '));
  }
  return found;
})()`;

/** Lets the observers of the pages that a tab opens from now on be held back. */
export async function prepareWidths(page: Page): Promise<void> {
  await page.addInitScript(holdable);
}

/** Goes to a width; returns what is too wide in the first frame, and then lets the page go on. */
export async function tooWideAt(page: Page, width: number): Promise<readonly string[]> {
  await page.evaluate('holdObservers(true)');
  await page.setViewportSize({ width, height: 900 });
  const found = await page.evaluate<readonly string[]>(tooWide);
  await page.evaluate('holdObservers(false)');
  return found;
}

/** Checks that nothing of a page is wider than its place, in no frame of a way from 1440 on. */
export async function assertFits(page: Page, what: string, way: readonly number[]): Promise<void> {
  await page.setViewportSize({ width: 1440, height: 900 });
  let former = 1440;
  for (const width of way) {
    const found = await tooWideAt(page, width);
    assert.deepEqual(found, [], `${what} from ${former} to ${width}`);
    former = width;
  }
}
