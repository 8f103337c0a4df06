import { useEffect, useRef, useState } from 'preact/hooks';

/** The state of the console that its URL has: behind `#`, so that no server and no log gets it. */
export interface Route {
  /** `/`, `/pages`, `/pages/<id>` … */
  readonly path: string;
  readonly params: URLSearchParams;
}

/** The current route. */
export function currentRoute(): Route {
  const [path = '', query = ''] = location.hash.slice(1).split('?', 2);
  return { path: path === '' ? '/' : path, params: new URLSearchParams(query) };
}

type Params = Readonly<Record<string, string | number | undefined>>;

/** The address of a route; parameters that are empty or undefined are left out. */
export function linkTo(path: string, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return `#${path}${text === '' ? '' : `?${text}`}`;
}

/** Goes to a route; `replace` leaves no entry in the browser's history. */
export function goTo(path: string, params: Params = {}, replace = false): void {
  const hash = linkTo(path, params);
  if (!replace) {
    location.hash = hash;
    return;
  }
  history.replaceState(null, '', hash);
  dispatchEvent(new HashChangeEvent('hashchange'));
}

/** The current route; the component is rendered again when it changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(currentRoute);
  const shown = useRef(location.hash);
  useEffect(() => {
    const changed = (): void => {
      shown.current = location.hash;
      setRoute(currentRoute());
    };
    addEventListener('hashchange', changed);
    // The address may have changed between the first rendering and this listener.
    if (location.hash !== shown.current) changed();
    return () => {
      removeEventListener('hashchange', changed);
    };
  }, []);
  return route;
}

/** The row that was on top of the list of a screen when a person left it; 0 for a new visit. */
export function leftRow(): number {
  const { row } = (history.state ?? {}) as { readonly row?: unknown };
  return typeof row === 'number' && Number.isInteger(row) && row > 0 ? row : 0;
}

/** Keeps the row on top of a list in this entry of the browser's history, for the way back. */
export function keepRow(row: number): void {
  if (row !== leftRow()) history.replaceState({ row }, '');
}
