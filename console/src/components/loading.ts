import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

/** What a component has loaded so far. */
export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/**
 * Loads data when the component appears, and again when one of `inputs` changes. The former data
 * stays until the new one is there.
 */
export function useLoad<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: unknown; isLoading: boolean }>({
    isLoading: true,
  });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
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
  }, [...inputs, turn]);
  const reload = useCallback(() => {
    setTurn((before) => before + 1);
  }, []);
  return { data: state.data, error: state.error, isLoading: state.isLoading, reload };
}

/** Loads pages of rows on demand, and keeps them all. */
export function usePages<Row, Cursor>(
  load: (after: Cursor | undefined) => Promise<{ rows: readonly Row[]; next: Cursor | null }>,
): {
  readonly rows: readonly Row[];
  readonly isEnd: boolean;
  readonly isLoading: boolean;
  readonly error: unknown;
  readonly more: () => void;
} {
  const [rows, setRows] = useState<readonly Row[]>([]);
  const [next, setNext] = useState<Cursor | null | undefined>(undefined);
  const [error, setError] = useState<unknown>();
  const [isLoading, setLoading] = useState(false);
  const busy = useRef(false);
  const more = (): void => {
    if (busy.current || next === null) return;
    busy.current = true;
    setLoading(true);
    load(next).then(
      (page) => {
        busy.current = false;
        setRows((before) => [...before, ...page.rows]);
        setNext(page.next);
        setLoading(false);
      },
      (failure: unknown) => {
        busy.current = false;
        setError(failure);
        setLoading(false);
      },
    );
  };
  useEffect(more, []);
  return { rows, isEnd: next === null, isLoading, error, more };
}

/** Runs actions one at a time, with what the last one said. */
export function useAction(onDone: () => void) {
  const [error, setError] = useState<unknown>();
  const [said, setSaid] = useState('');
  const run = async (action: () => Promise<string>): Promise<void> => {
    setError(undefined);
    try {
      setSaid(await action());
      onDone();
    } catch (failure) {
      setError(failure);
    }
  };
  return { error, said, run };
}
