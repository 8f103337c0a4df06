/** A request of one part of the console to another. */
interface Signal {
  readonly send: () => void;
  /** Calls a function for each request; returns the function that ends this. */
  readonly listen: (listener: () => void) => () => void;
}

function createSignal(): Signal {
  const target = new EventTarget();
  return {
    send: () => target.dispatchEvent(new Event('signal')),
    listen(listener) {
      target.addEventListener('signal', listener);
      return () => {
        target.removeEventListener('signal', listener);
      };
    },
  };
}

/** Opens the help beside the screen, or closes it. */
export const helpSignal = createSignal();
/** Begins the tour. */
export const tourSignal = createSignal();
