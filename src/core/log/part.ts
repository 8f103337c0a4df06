import type { LogPart, OpenPart, Store } from './store.ts';

/** The parts of a store, each of which is opened once. */
export function openParts(given: OpenPart): Store['part'] {
  const opened = new Map<object, object>();
  return <P extends object>(part: LogPart<P>): P => {
    const known = opened.get(part) as P | undefined;
    if (known !== undefined) return known;
    const made = part.open(given);
    opened.set(part, made);
    return made;
  };
}

/** The parts of a store for changes that nothing follows yet. */
export function unfollowedParts(store: Pick<Store, 'part'>): Store['part'] {
  return (part) => part.unfollowed?.(store.part(part)) ?? store.part(part);
}
