import { opendirSync } from 'node:fs';
import { join } from 'node:path/posix';
import type { DiskMount } from '../../core/config/config.ts';
import { undefinedIfMissing } from '../../core/http/content/file-errors.ts';
import { languagePreference } from '../../core/http/representation/negotiation.ts';
import { Failure } from '../../core/values/failure.ts';
import type { CanonicalPath } from '../../core/values/path.ts';
import { fileCacheValidMs } from '../../core/http/limits.ts';
import { type MountRequest, configuredPath } from './mount-path.ts';

/** Entries of a folder with error pages; in a larger one, no page by language is found. */
const errorFolderEntriesMax = 1_000;

/** A file that can be the page of an error. */
export interface ErrorPageFile {
  /** Path below the root. */
  readonly path: string;
  /** The language in its name, in lower case; undefined without one. */
  readonly lang: string | undefined;
  /** Whether another Accept-Language could choose another file. */
  readonly variesByLanguage: boolean;
}

/** Finds the pages of a mount for a status, best first. */
type FindErrorPages = (status: number, request: MountRequest) => readonly ErrorPageFile[];

/**
 * Finds `404.html`, and `404.de.html` for visitors who prefer German: the first segment of the path
 * decides if it is a language that has a page (`/de/…`), then Accept-Language, as for page rules.
 * Pages of the class (`4xx.html`) come after those of the status. The names of the folder are read
 * again after `fileCacheValidMs`.
 */
export function createErrorPages(
  { root, errors }: Pick<DiskMount, 'root' | 'errors'>,
  now: () => number,
): FindErrorPages {
  if (errors === undefined) return () => [];
  const folder = errors === '/' ? '' : `${errors}/`;
  let names: ReturnType<typeof readNames>;
  let readMs = -Infinity;
  return (status, { path, fields }) => {
    const nowMs = now();
    if (!(nowMs >= readMs && nowMs - readMs < fileCacheValidMs)) {
      names = readNames(join(root, folder));
      readMs = nowMs;
    }
    return [String(status), `${Math.floor(status / 100)}xx`].flatMap((base) => {
      const languages = names === undefined ? plainOnly : (names.get(base) ?? []);
      const ordered = inOrder(languages, path, fields['accept-language']);
      return ordered.langs.flatMap(({ lang }) => {
        const file = `${folder}${base}${lang === undefined ? '' : `.${lang}`}.html`;
        const below = configuredPath(file);
        return below === undefined
          ? []
          : [{ path: below, lang, variesByLanguage: ordered.variesByLanguage }];
      });
    });
  };
}

/** Whether the page exists is seen when it is sent. */
const plainOnly: readonly NamedLanguage[] = [{ lang: undefined }];

/** The language in the name of a file: an array sorts items that are undefined to its end. */
type NamedLanguage = Pick<ErrorPageFile, 'lang'>;

/** The languages of the pages in a folder, by the first part of their names; as namesIn. */
function readNames(folder: string): ReadonlyMap<string, readonly NamedLanguage[]> | undefined {
  const found = new Map<string, NamedLanguage[]>();
  const names = namesIn(folder);
  if (names === undefined) return undefined;
  for (const name of names.toSorted()) {
    const [, base, lang] =
      /^(\d\d\d|[45]xx)(?:\.([a-z]{2,8}(?:-[a-z0-9]{1,8})*))?\.html$/.exec(name) ?? [];
    if (base === undefined) continue;
    const langs = found.get(base) ?? [];
    found.set(base, langs);
    langs.push({ lang });
  }
  return found;
}

/** The names of a folder; undefined if it has too many to read them between two answers. */
function namesIn(folder: string): readonly string[] | undefined {
  try {
    const opened = undefinedIfMissing(() => opendirSync(folder));
    const names: string[] = [];
    try {
      for (let entry = opened?.readSync(); entry; entry = opened?.readSync()) {
        if (names.length === errorFolderEntriesMax) return undefined;
        names.push(entry.name);
      }
    } finally {
      opened?.closeSync();
    }
    return names;
  } catch (thrown) {
    // A folder that cannot be read has no page for the failure that is being reported.
    if (thrown instanceof Failure) return [];
    throw thrown;
  }
}

function inOrder(
  languages: readonly NamedLanguage[],
  path: CanonicalPath,
  accept: string | undefined,
): { readonly langs: readonly NamedLanguage[]; readonly variesByLanguage: boolean } {
  if (languages.length < 2) return { langs: languages, variesByLanguage: false };
  const [, segment = ''] = path.toLowerCase().split('/', 2);
  const isOfPath = ({ lang }: NamedLanguage): boolean =>
    lang !== undefined && (segment === lang || segment.startsWith(`${lang}-`));
  const ofPath = languages.filter(isOfPath);
  const preference = languagePreference(accept);
  const rankOf = ({ lang }: NamedLanguage): number => preference.rank(lang) ?? last;
  const last = Number.MAX_SAFE_INTEGER;
  const others = languages
    .filter((one) => !isOfPath(one))
    .toSorted((one, other) => rankOf(one) - rankOf(other));
  // The longest tag is the closest one: `de-at` before `de` for `/de-at/`.
  const closest = ofPath.toSorted(
    (one, other) => (other.lang?.length ?? 0) - (one.lang?.length ?? 0),
  );
  return { langs: [...closest, ...others], variesByLanguage: ofPath.length === 0 };
}
