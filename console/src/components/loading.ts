import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

/** What a component has loaded so far. */
export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/**
 * Loads data when the component appears, and again when one of `inputs` or `live`, a result of
 * useLive, changes. The former data stays until the new one is there.
 */
export function useLoad<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
  live = 1,
): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: unknown; isLoading: boolean }>({
    isLoading: true,
  });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (live === 0) return undefined;
    const abort = new AbortController();
    setState(({ data }) => ({ ...(data !== undefined && { data }), isLoading: true }));
    load(abort.signal).then(
      (data) => {
        if (!abort.signal.aborted) setState({ data, isLoading: false });
      },
      (error: unknown) => {
        if (!abort.signal.aborted) setState({ error, isLoading: false });
      },
    );
    return () => {
      abort.abort();
    };
  }, [...inputs, turn, live]);
  const reload = useCallback(() => {
    setTurn((before) => before + 1);
  }, []);
  return { data: state.data, error: state.error, isLoading: state.isLoading, reload };
}

/** Rows that are read at once for the way back to a place of a list, and those in view there. */
const [leftRowsMax, rowsInView] = [5_000, 100];
/** Rows of the first page of a list, and of the largest one; each page has as many as are there. */
const [pageRowsMin, pageRowsMax] = [200, 1000];

interface LoadedPages<Row, Cursor> {
  /** It grows in place: to copy it for each page takes longer than to load the page. */
  readonly rows: Row[];
  next: Cursor | null | undefined;
}

/** A list that is loaded page by page. */
export interface RowPages<Row> {
  readonly rows: readonly Row[];
  readonly isEnd: boolean;
  readonly isLoading: boolean;
  readonly error: unknown;
  readonly more: () => void;
  /** Whether the server has other rows by now, and the list is too long to read it again by itself. */
  readonly isStale: boolean;
  readonly reload: () => void;
}

/**
 * Loads pages of rows on demand, and keeps them all. When `live`, a result of useLive, changes, it
 * reads a list of up to `pageRowsMax` rows again, and shows the former rows until then. At first it
 * reads as many as show `leftRow`, the one on top when a person left the list.
 */
export function usePages<Row, Cursor>(
  load: (
    after: Cursor | undefined,
    limit: number,
  ) => Promise<{ rows: readonly Row[]; next: Cursor | null }>,
  live = 1,
  leftRow = 0,
): RowPages<Row> {
  const shown = useRef<LoadedPages<Row, Cursor>>({ rows: [], next: undefined });
  const loading = useRef<LoadedPages<Row, Cursor> | undefined>(undefined);
  const [state, setState] = useState<{ isLoading: boolean; error?: unknown }>({ isLoading: true });
  const [isStale, setStale] = useState(false);
  const read = async (pages: LoadedPages<Row, Cursor>, wanted: number): Promise<void> => {
    loading.current = pages;
    setState({ isLoading: true });
    let error: unknown;
    try {
      do {
        const limit = Math.min(pageRowsMax, Math.max(pageRowsMin, pages.rows.length));
        const page = await load(pages.next ?? undefined, limit);
        if (loading.current !== pages) return;
        for (const row of page.rows) pages.rows.push(row);
        pages.next = page.next;
      } while (pages.next !== null && pages.rows.length < wanted);
      shown.current = pages;
    } catch (failure) {
      if (loading.current !== pages) return;
      error = failure;
    }
    loading.current = undefined;
    setState({ isLoading: false, error });
  };
  const reload = (): void => {
    setStale(false);
    const { rows: former, next } = shown.current;
    const left = leftRow === 0 ? 0 : Math.min(leftRow + rowsInView, leftRowsMax);
    const wanted = next === undefined ? left : former.length;
    void read({ rows: [], next: undefined }, wanted);
  };
  useEffect(() => {
    if (live === 0) return undefined;
    if (shown.current.rows.length > pageRowsMax) setStale(true);
    else reload();
    return () => {
      loading.current = undefined;
    };
  }, [live]);
  const more = (): void => {
    const pages = shown.current;
    if (loading.current === undefined && pages.next !== undefined && pages.next !== null) {
      void read(pages, 0);
    }
  };
  const { rows, next } = shown.current;
  return { rows, isEnd: next === null, ...state, error: state.error, more, isStale, reload };
}

/** Runs actions one at a time, with what the last one said. */
export function useAction(onDone: () => void) {
  const [error, setError] = useState<unknown>();
  const [said, setSaid] = useState('');
  const [isRunning, setRunning] = useState(false);
  const run = async (action: () => Promise<string>): Promise<void> => {
    setError(undefined);
    setRunning(true);
    try {
      setSaid(await action());
    } catch (failure) {
      setError(failure);
    }
    setRunning(false);
    // An action that failed may have done a part.
    onDone();
  };
  return { error, said, isRunning, run };
}
