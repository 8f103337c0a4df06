import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Operations } from '../../cli/client/operations.ts';
import { UsageError } from '../../cli/command.ts';
import { picturesMax } from '../../cli/limits.ts';
import { type ApiTarget, callApi } from '../../cli/remote/api-client.ts';
import { escapeHtml, plainPage } from '../../core/http/content/page.ts';
import { errorReason } from '../../core/log/folder/data-folder.ts';
import { Chromium, type ChromiumTab, findChromium } from './chromium.ts';

const picturesMsMax = 20 * 60_000;

/** How long the preview link for the pictures works, if it cannot be revoked. */
const previewSecondsOfPictures = 30 * 60;

/** A row of draft.compare. */
export type ComparedRow = Operations['draft.compare']['output']['rows'][number];

/** Where the pictures of a comparison come from, and where they go. */
interface PicturesParts {
  readonly api: ApiTarget;
  readonly draft: string;
  /** The origin of the paths. */
  readonly origin: string;
  readonly folder: string;
}

/** The file of a picture, or why there is none. */
type Picture = { readonly file: string } | { readonly problem: string };

interface PictureOf {
  readonly url: string;
  readonly folder: string;
  readonly name: string;
}

const sides = ['live', 'draft'] as const;

/** The path of a browser. Throws UsageError if this machine has none. */
export function requireChromium(): string {
  const found = findChromium(process.env);
  if (found !== undefined) return found;
  throw new UsageError(
    'there is no browser for --pictures: install Chromium or Google Chrome, or name its program ' +
      'by the variable CHROMIUM',
  );
}

/**
 * Takes a picture of each URL that differs, live and in the draft, and writes a page that shows
 * both side by side. Resolves to what it has done, in a sentence. A link to a preview of the draft
 * shows the draft; it is revoked at the end.
 */
export async function takePictures(
  program: string,
  { rows, differing }: { readonly rows: readonly ComparedRow[]; readonly differing: number },
  parts: PicturesParts,
): Promise<string> {
  const { api, draft, folder } = parts;
  await mkdir(folder, { recursive: true }).catch((error: unknown) => {
    throw new UsageError(`cannot write to ${folder}: ${errorReason(error)}`);
  });
  const v = { draft, seconds: previewSecondsOfPictures };
  // Without a vk, an answer always has the link.
  const { data: preview } = await callApi(api, 'draft.preview', { v, vk: undefined });
  const { url: link = '' } = preview;
  const browser = await Chromium.start(program);
  const endMs = performance.now() + picturesMsMax;
  const shown: string[] = [];
  try {
    const tabs = { live: await browser.openTab(), draft: await browser.openTab() };
    const entered = new Set<string>();
    for (const [at, row] of rows.filter(({ url }) => url !== undefined).entries()) {
      if (at >= picturesMax || performance.now() > endMs) break;
      const url = new URL(row.url ?? '', parts.origin);
      if (!entered.has(url.origin)) await tabs.draft.open(onOrigin(link, url.origin));
      entered.add(url.origin);
      const [live, drafted] = await Promise.all(
        sides.map((side) =>
          pictureOf(tabs[side], row[side], {
            url: url.href,
            folder,
            name: `${at + 1}-${side}.png`,
          }),
        ),
      );
      shown.push(rowSection(row, [live, drafted]));
    }
  } finally {
    await browser.close();
    await callApi(api, 'draft.revoke', { v: { draft, id: preview.id }, vk: undefined });
  }
  const left = differing - shown.length;
  const summary = `${shown.length} of ${differing} URLs and breadcrumbs that differ.`;
  const page = plainPage(`Draft ${draft}`, summary, `${style}${shown.join('\n')}`);
  const file = join(folder, 'index.html');
  await writeFile(file, page);
  const others = left === 0 ? '' : ` ${left} more that differ have none.`;
  return `${file} shows pictures of ${shown.length}.${others}`;
}

/** The link to the preview, at another origin of the same server. */
function onOrigin(link: string, origin: string): string {
  const { pathname, search } = new URL(link);
  return `${origin}${pathname}${search}`;
}

/** A redirect has no page of its own, and may lead to another site. */
async function pictureOf(
  tab: ChromiumTab,
  { status, target, failure }: ComparedRow['live'],
  { url, folder, name }: PictureOf,
): Promise<Picture> {
  if (target !== undefined) return { problem: `${status}, to ${target}` };
  if (failure !== undefined) return { problem: failure };
  try {
    await tab.open(url);
    await writeFile(join(folder, name), await tab.picture());
    return { file: name };
  } catch (error) {
    return { problem: `No picture: ${error instanceof Error ? error.message : String(error)}` };
  }
}

const style =
  '<style>main{max-width:none;padding-top:3rem}' +
  '.sides{display:grid;grid-template-columns:1fr 1fr;gap:1rem}' +
  'figure{margin:0}img{width:100%;border:1px solid}pre{overflow:auto}</style>';

function rowSection(row: ComparedRow, pictures: readonly (Picture | undefined)[]): string {
  const { url = '', differs, headers = [], diff } = row;
  const fields = headers.length === 0 ? '' : ` (${headers.join(', ')})`;
  const figures = sides.map((side, at) => {
    const { status, source } = row[side];
    const picture = pictures[at];
    const content =
      picture !== undefined && 'file' in picture
        ? `<img src="${picture.file}" alt="${side}">`
        : `<p>${escapeHtml(picture?.problem ?? '')}</p>`;
    const caption = `<figcaption>${side}: ${status} ${escapeHtml(source)}</figcaption>`;
    return `<figure>${caption}${content}</figure>`;
  });
  return (
    `<section><h2>${escapeHtml(url)}</h2><p>${escapeHtml(`${differs.join(', ')}${fields}`)}</p>` +
    `<div class="sides">${figures.join('')}</div>` +
    `${diff === undefined ? '' : `<pre>${escapeHtml(diff)}</pre>`}</section>`
  );
}
