import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Busy } from './ui.tsx';

/** A component whose code is loaded when it first appears. */
export function lazy<P extends object>(
  load: () => Promise<ComponentType<P>>,
): (props: P) => preact.JSX.Element {
  let loaded: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const [, setLoaded] = useState(loaded !== undefined);
    useEffect(() => {
      if (loaded !== undefined) {
        // It may have loaded for another place, since this one was rendered without it.
        setLoaded(true);
        return;
      }
      void load().then((component) => {
        loaded = component;
        setLoaded(true);
      });
    }, []);
    const Component = loaded;
    return Component === undefined ? <Busy /> : <Component {...props} />;
  };
}
