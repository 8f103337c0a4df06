import { families } from '../../src/families.ts';
import { mkdir } from 'node:fs/promises';
import { uuidv7 } from 'uuidv7';
import type { LoggedDraft } from '../../src/core/log/store.ts';
import { openStore } from '../../src/core/log/open.ts';

/** Rules of one transaction while a folder is filled. */
const rulesPerCommit = 20_000;
const origins = 200;
/** Every 50th rule is a wildcard: 2 %. */
const wildcardEvery = 50;

/** The path of rule number `at`, the same in every folder. */
export function placeOf(at: number): { readonly origin: string; readonly path: string } {
  const origin = `http://site-${at % origins}.example`;
  const section = Math.floor(at / origins);
  const path = `/section-${section % 97}/page-${section}`;
  return { origin, path: at % wildcardEvery === 0 ? `${path}/*` : path };
}

/** The URL of a page of rule number `at`. */
export function visitOf(at: number): { readonly origin: string; readonly path: string } {
  const { origin, path } = placeOf(at);
  return { origin, path: path.endsWith('*') ? `${path.slice(0, -1)}below/it` : path };
}

/** The result of the process that fills a folder. */
export interface FillTimes {
  readonly seconds: number;
}

/** Fills a folder with small pages over 200 origins, 2 % of them wildcards. */
export async function fillFolder(folder: string, rules: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  const store = await openStore({ families, folder, now: Date.now, newId: uuidv7 });
  for (let first = 0; first < rules; first += rulesPerCommit) {
    const count = Math.min(rulesPerCommit, rules - first);
    const drafts = Array.from({ length: count }, (_, at) => draftOf(first + at));
    await store.commit('bench', () => ({ drafts, answer: () => undefined }));
  }
  await store.close();
}

function draftOf(at: number): LoggedDraft {
  return {
    family: 'userinterface',
    id: uuidv7(),
    action: 'insert',
    data: { ...placeOf(at), kind: 'content', content: `<h1>Page ${at}</h1>` },
  };
}
