import { call } from '../api/api.ts';
import { keepInserted } from '../components/inline-files.ts';
import {
  assetName,
  findAsset,
  freeName,
  pageOf,
  pictureSize,
  uploadFile,
  type OnProgress,
} from './asset-files.ts';

/** Pictures wider than this are shown smaller where the browser knows no srcset. */
const usualWidth = 1280;

/**
 * Uploads a file and gives it an address; resolves to the HTML that shows it in a page of an
 * origin: a picture in the sizes that the server makes, or a link.
 */
export async function htmlForFile(
  file: File,
  origin: string,
  onProgress: OnProgress,
): Promise<string> {
  const name = await freeName(assetName(file));
  const size = await pictureSize(file);
  await uploadFile(name, file, onProgress);
  const asset = await findAsset(name);
  if (asset === undefined) throw new Error(`The asset ${name} is gone again.`);
  const { path } = await pageOf(asset, origin);
  const address = encodeURI(path).replaceAll('?', '%3F').replaceAll('#', '%23');
  if (!asset.contenttype.startsWith('image/')) {
    return `<a href="${inAttribute(address)}">${inText(file.name)}</a>`;
  }
  keepInserted(new URL(address, location.href).pathname, file);
  const { widths } = await call<{ readonly widths: readonly number[] }>('asset.list', { limit: 1 });
  const hasSizes = /^image\/(?:jpeg|png|webp|avif)$/.test(asset.contenttype);
  return pictureHtml(inAttribute(address), size, hasSizes ? widths : []);
}

/** The element of a picture; `address` is the value of an attribute. */
export function pictureHtml(
  address: string,
  size: { readonly width: number; readonly height: number } | undefined,
  widths: readonly number[],
): string {
  if (size === undefined) return `<img src="${address}" alt="">`;
  const { width, height } = size;
  const attributes = `width="${width}" height="${height}" alt=""`;
  const smaller = widths.filter((one) => one >= 320 && one < width);
  if (smaller.length === 0) return `<img src="${address}" ${attributes}>`;
  const all = [...smaller, ...(width <= Math.max(...widths) ? [width] : [])];
  const set = all.map((one) => `${address}?width=${one} ${one}w`).join(', ');
  const source = `${address}?width=${Math.min(width, usualWidth)}`;
  return `<img src="${source}" srcset="${set}" sizes="(max-width: ${width}px) 100vw, ${width}px" ${attributes}>`;
}

function inText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

function inAttribute(text: string): string {
  return inText(text).replaceAll('"', '&quot;');
}
