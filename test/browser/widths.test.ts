import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { oneBrowser } from './browser.ts';
import { signIn, untilTrue } from './console-tab.ts';
import { writeSeries } from './screens.ts';
import { assertFits, everyWay, prepareWidths, tooWideAt, zoomed } from './widths.ts';

const openTab = oneBrowser();
const started = startSite({ after });

suite('after a change of the window', () => {
  test('the charts of the overview are never wider than their place', async (t) => {
    const site = await started;
    await writeSeries(site, Date.now());
    const tab = await openTab(t, { locale: 'en-GB', viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await prepareWidths(page);
    await signIn(tab, site.url, site.adminKey);
    await page.locator('.chart canvas').nth(1).waitFor();
    await assertFits(page, 'the overview', [...everyWay, ...zoomed]);
    // Once its observer has run, a chart fills its place.
    await page.setViewportSize({ width: 390, height: 900 });
    await untilTrue(
      page,
      `[...document.querySelectorAll('.plot')].every((plot) =>
        plot.clientWidth < 390 && plot.querySelector('.u-wrap').offsetWidth === plot.clientWidth &&
        plot.querySelector('.u-over').offsetWidth < plot.clientWidth)`,
    );
  });

  test('what a script has still to mend is found', async (t) => {
    const { page } = await openTab(t, { viewport: { width: 1440, height: 900 } });
    await prepareWidths(page);
    await page.goto('about:blank');
    await page.setContent(`<meta name="viewport" content="width=device-width">
      <style>body { margin: 0 }</style><div id="place"><table><td>x</table></div>
      <div style="overflow: auto"><pre style="width: 2000px">scrolls</pre></div><script>
      const draw = () => {
        document.querySelector('table').style.width = document.querySelector('#place').clientWidth + 'px';
      };
      new ResizeObserver(draw).observe(document.querySelector('#place'));
    </script>`);
    await page.waitForFunction(`document.querySelector('table').style.width === '1440px'`);
    const [wide, ...elements] = await tooWideAt(page, 390);
    assert.equal(wide, 'the page: 1440 of 390');
    assert.equal(elements[0], 'table: 0 to 1440 of 0 to 390');
    await page.waitForFunction(`document.querySelector('table').style.width === '390px'`);
    assert.deepEqual(await tooWideAt(page, 390), []);
  });
});
