import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import sharp from 'sharp';
import { temporaryFolder } from '../folder.ts';
import { startSite } from '../harness.ts';
import { runWaymark } from '../process.ts';
import { unpackChromium } from './packaged-chromium.ts';

const page = (colour: string): string =>
  `<!doctype html><title>t</title><body style="margin:0;background:${colour};height:3000px">`;

async function colourOf(file: string): Promise<readonly number[]> {
  const { data, info } = await sharp(file).raw().toBuffer({ resolveWithObject: true });
  return [info.width, info.height, ...data.subarray(0, 3)];
}

suite('waymark draft compare --pictures', () => {
  test('shows each URL that differs, live and in the draft, side by side', async (t) => {
    const rules = [
      { path: '/%3Ca%3E', content: page('rgb(255,0,0)'), contenttype: 'text/html' },
      { path: '/same', content: 'same' },
      { path: '/moved', content: 'here' },
    ];
    const site = await startSite(t, { rules });
    await site.call('svc1.draft.insert', { name: 'spring' });
    const draft = 'spring';
    const { rows } = (await site.call('svc1.userinterface.list', {})).data;
    const { id } = rows.find(
      ({ path }: { readonly path: string }) => !/^\/(same|moved)/.test(path),
    );
    const green = { id, content: page('rgb(0,128,0)') };
    assert.equal((await site.call('svc1.userinterface.edit', green, { draft })).error, undefined);
    const redirect = { path: '/moved', rve: 1, kind: 'redirect', target: 'http://x.example/' };
    await site.call('svc1.userinterface.insert', redirect, { draft });
    const folder = join(await temporaryFolder(t), 'pictures');
    const { executablePath, env } = await unpackChromium();
    const words = ['draft', 'compare', draft, '--url', site.url, '--apikey', site.adminKey];
    const { code, err } = await runWaymark([...words, '--pictures', folder], {
      env: { ...env, CHROMIUM: executablePath },
    });
    assert.equal(code, 0, err);
    assert.match(err, /index\.html shows pictures of \d+\./);
    const html = await readFile(join(folder, 'index.html'), 'utf8');
    assert.ok(!html.includes('<a>'), html);
    const [, live = ''] = /<img src="(\d+-live\.png)"/.exec(html) ?? [];
    assert.deepEqual(await colourOf(join(folder, live)), [1280, 3000, 255, 0, 0]);
    const drafted = live.replace('live', 'draft');
    const [width, , ...colour] = await colourOf(join(folder, drafted));
    assert.deepEqual([width, ...colour], [1280, 0, 128, 0]);
    assert.deepEqual(
      (await readdir(folder)).filter((name) => name.endsWith('.png')).length >= 2,
      true,
    );
    const { previews } = (await site.call('svc1.draft.read', { draft })).data;
    assert.deepEqual(previews ?? [], [], 'the link is revoked');
  });

  test('without a browser, it says what to install', async (t) => {
    const folder = await temporaryFolder(t);
    const words = ['draft', 'compare', 'x', '--url', 'http://127.0.0.1:9', '--pictures', folder];
    const { code, err } = await runWaymark(words, { env: { CHROMIUM: join(folder, 'none') } });
    assert.equal(code, 2);
    assert.match(err, /there is no browser for --pictures: install Chromium/);
  });
});
