import { useEffect, useRef, useState } from 'preact/hooks';
import { call } from '../api/api.ts';
import { useAction } from '../components/loading.ts';

/** What a person looks for, as userinterface.replace takes it. */
export interface Search {
  readonly find: string;
  readonly with: string;
  readonly regex: boolean;
  readonly ignore_case: boolean;
  readonly whole_words: boolean;
  readonly parts: readonly string[];
  readonly origin?: string;
  readonly path?: string;
}

/** A page that has the text, with the first places. */
export interface FoundPage {
  readonly id: string;
  readonly seq: number;
  readonly origin: string;
  readonly path: string;
  readonly kind: string;
  readonly count: number;
  readonly found: readonly {
    readonly field: string;
    readonly before: string;
    readonly found: string;
    readonly replaced: string;
    readonly after: string;
  }[];
  readonly problem?: string;
}

/** What a search has found so far. */
export interface Found {
  readonly search: Search;
  /** The id of the draft that was searched; undefined for the live site. */
  readonly draft: string | undefined;
  readonly examined: number;
  readonly pages: readonly FoundPage[];
  /** Whether there are more pages than one replacement changes. */
  readonly isCut: boolean;
}

/** Pages that one userinterface.replace changes. */
export const pagesMax = 1000;

interface ReportPage {
  readonly examined: number;
  readonly rows: readonly FoundPage[];
  readonly next: string | null;
}

/** Searches part by part; `found` is what all parts so far have. Leaving the screen ends it. */
export function useFind() {
  const [found, setFound] = useState<Found>();
  const action = useAction(() => undefined);
  const latest = useRef(new AbortController());
  useEffect(
    () => () => {
      latest.current.abort();
    },
    [],
  );
  const find = async (search: Search, draft: string | undefined): Promise<string> => {
    const { signal } = (latest.current = new AbortController());
    let [examined, after]: [number, string | null] = [0, ''];
    const pages: FoundPage[] = [];
    setFound(undefined);
    while (after !== null && pages.length < pagesMax) {
      const place: { after?: string } = after === '' ? {} : { after };
      const page: ReportPage = await call<ReportPage>(
        'userinterface.replace',
        { ...search, ...place },
        { signal, ...(draft === undefined ? { isLive: true } : { draft }) },
      );
      examined += page.examined;
      after = page.next;
      pages.push(...page.rows);
      const isCut = pages.length > pagesMax || (pages.length === pagesMax && after !== null);
      setFound({ search, draft, examined, pages: pages.slice(0, pagesMax), isCut });
    }
    return '';
  };
  const forget = (): void => {
    latest.current.abort();
    setFound(undefined);
  };
  return { found, find, forget, ...action };
}
