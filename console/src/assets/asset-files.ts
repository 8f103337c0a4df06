import { call, currentToken, service } from '../api/api.ts';
import { currentDraft } from '../api/session.ts';
import { addressOf } from '../pages/address.ts';

/** A page rule that shows an asset. */
export interface AssetUse {
  readonly id: string;
  readonly origin: string;
  readonly path: string;
}

/** An asset as asset.list and asset.read answer it. */
export interface Asset {
  readonly id: string;
  readonly name: string;
  readonly sha256: string;
  readonly bytes: number;
  readonly contenttype: string;
  readonly used: number;
  readonly uses: readonly AssetUse[];
}

/** The address of the file of an asset, which needs the session; with a size for a picture. */
export function fileUrl(name: string, query: Readonly<Record<string, string>> = {}): string {
  const path = name.split('/').map(encodeURIComponent).join('/');
  const url = new URL(`asset/${path}`, service);
  const draft = currentDraft();
  const all = { ...query, ...(draft !== undefined && { draft: draft.id }) };
  for (const [key, value] of Object.entries(all)) url.searchParams.set(key, value);
  return url.href;
}

/** An asset that has a name; undefined if there is none. */
export async function findAsset(name: string): Promise<Asset | undefined> {
  // The shortest of the names that begin so comes first.
  const query = { prefix: name, sort: 'name', limit: 1 };
  const { rows } = await call<{ readonly rows: readonly Asset[] }>('asset.list', query);
  return rows.find((one) => one.name === name);
}

/** The name of a file as an asset has it: with an extension, and without what a name cannot have. */
export function assetName({ name }: Pick<File, 'name'>): string {
  const clean = name
    .normalize('NFC')
    // oxlint-disable-next-line no-control-regex -- control characters are what it replaces
    .replaceAll(/[\0-\x1f\x7f\\/]+/g, '-')
    .replace(/^\.+/, '')
    .slice(-100);
  return /\.[A-Za-z0-9]{1,16}$/.test(clean) ? clean : `${clean === '' ? 'file' : clean}.bin`;
}

/** `pier-2.jpg` for `pier.jpg` and 2. */
export function numbered(name: string, number: number): string {
  const dot = name.lastIndexOf('.');
  return number < 2 ? name : `${name.slice(0, dot)}-${number}${name.slice(dot)}`;
}

/** The first name after the given one that no asset has. */
export async function freeName(name: string): Promise<string> {
  for (let number = 1; ; number += 1) {
    const one = numbered(name, number);
    if ((await findAsset(one)) === undefined) return one;
  }
}

/** How much of a file has been sent, from 0 to 1. */
export type OnProgress = (share: number) => void;

/** How often an upload goes on after a lost connection, and the first pause; each one is doubled. */
const lossesMax = 6;
const pauseMs = 500;

/**
 * Uploads a file as the asset of a name; one of this name is replaced. After a lost connection, it
 * goes on with what the server does not have yet. Rejects with the reason.
 */
export async function uploadFile(name: string, file: File, onProgress: OnProgress): Promise<void> {
  for (let losses = 0; ; losses += 1) {
    try {
      const received = losses === 0 ? 0 : await receivedBytes(name, file.size);
      await sendRest(name, file, { first: Math.min(received, file.size - 1), onProgress });
      return;
    } catch (error) {
      if (!(error instanceof LostConnection) || losses === lossesMax) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs * 2 ** losses));
  }
}

class LostConnection extends Error {}

/** The bytes that the server has of an interrupted upload. */
async function receivedBytes(name: string, total: number): Promise<number> {
  // A file without content has no range.
  if (total === 0) return 0;
  const answer = await put(name, { range: `bytes */${total}` });
  const { data } = JSON.parse(answer) as { readonly data: { readonly received: number } };
  return data.received;
}

async function sendRest(
  name: string,
  file: File,
  { first, onProgress }: { readonly first: number; readonly onProgress: OnProgress },
): Promise<void> {
  const { size } = file;
  const range = first > 0 ? `bytes ${first}-${size - 1}/${size}` : undefined;
  const body = first > 0 ? file.slice(first) : file;
  const shown = (loaded: number): void => {
    onProgress(size === 0 ? 1 : Math.min(1, (Math.max(0, first) + loaded) / size));
  };
  await put(name, { range, body, onLoaded: shown });
}

/** Sends a PUT of an asset; resolves to the answer. Rejects with the reason, or LostConnection. */
function put(
  name: string,
  {
    range,
    body = null,
    onLoaded,
  }: {
    /** The field Content-Range. */
    readonly range: string | undefined;
    readonly body?: Blob | null;
    readonly onLoaded?: (bytes: number) => void;
  },
): Promise<string> {
  return new Promise((resolve, reject) => {
    // fetch says nothing about its progress.
    const request = new XMLHttpRequest();
    request.open('PUT', fileUrl(name));
    request.setRequestHeader('apikey', currentToken());
    if (range !== undefined) request.setRequestHeader('content-range', range);
    request.upload.addEventListener('progress', ({ loaded }) => {
      onLoaded?.(loaded);
    });
    request.addEventListener('load', () => {
      if (request.status === 200) resolve(request.responseText);
      else reject(new Error(messageOf(request)));
    });
    request.addEventListener('error', () => {
      const message = 'The connection has ended before the upload was complete.';
      reject(new LostConnection(message));
    });
    request.send(body);
  });
}

function messageOf({ responseText, status }: XMLHttpRequest): string {
  try {
    const { error } = JSON.parse(responseText) as { error?: { message?: string } };
    return error?.message ?? `The server answered ${status}.`;
  } catch {
    return `The server answered ${status}.`;
  }
}

/** The folder in which assets get their addresses, unless a page shows them elsewhere. */
const assetsFolder = '/assets/';

/**
 * The page that shows an asset on an origin; makes one where nothing answers so far. A picture has
 * an address only by such a page.
 */
export async function pageOf(asset: Asset, origin: string): Promise<AssetUse> {
  const found = asset.uses.find((use) => isReachable(use) && isFor(use, origin));
  if (found !== undefined) return found;
  for (let number = 1; ; number += 1) {
    const path = assetsFolder + numbered(asset.name, number);
    if (await isTaken(origin, path)) continue;
    const rule = { origin, path, kind: 'content', asset: asset.name };
    return call<AssetUse>('userinterface.insert', rule);
  }
}

/** Whether visitors can ask for the path of a page: a breadcrumb's key, and a wildcard, is none. */
export function isReachable({ path }: AssetUse): boolean {
  return path.startsWith('/') && !path.includes('*');
}

function isFor(use: AssetUse, origin: string): boolean {
  return use.origin === '*' || use.origin.split(' ').includes(origin);
}

/** Whether a file, a page or another server answers a path. */
async function isTaken(origin: string, path: string): Promise<boolean> {
  const url = addressOf({ origin, path });
  const { winner } = await call<{ winner: object | null }>('userinterface.explain', { url });
  return winner !== null;
}

/** The size of a picture in pixels as a browser shows it; undefined for a file that is none. */
export async function pictureSize(
  file: Blob,
): Promise<{ readonly width: number; readonly height: number } | undefined> {
  if (!file.type.startsWith('image/')) return undefined;
  const url = URL.createObjectURL(file);
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const { naturalWidth: width, naturalHeight: height } = image;
    return width > 0 && height > 0 ? { width, height } : undefined;
  } catch {
    return undefined;
  } finally {
    URL.revokeObjectURL(url);
  }
}
