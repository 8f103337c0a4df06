import { useEffect, useState } from 'preact/hooks';
import { draftedOperations } from './drafted-operations.ts';
import { currentDraft, keepDraft, type ChosenDraft } from './session.ts';

const drafted = new Set(draftedOperations);
const listeners = new Set<() => void>();

/** The member of an envelope that names the draft of the tab; none for what no draft has. */
export function draftFor(name: string, v: object, isLive = false): { readonly draft?: string } {
  const draft = currentDraft();
  const isPast = 'as_of' in v && v.as_of !== undefined;
  return draft === undefined || isLive || isPast || !drafted.has(name) ? {} : { draft: draft.id };
}

/** Makes the screens of the tab work in a draft; undefined for the live site. */
export function chooseDraft(draft: ChosenDraft | undefined): void {
  keepDraft(draft);
  for (const listener of listeners) listener();
}

/** The draft that the tab works in; the component is rendered again when it is another one. */
export function useDraft(): ChosenDraft | undefined {
  const [draft, setDraft] = useState(currentDraft);
  useEffect(() => {
    const changed = (): void => {
      setDraft(currentDraft());
    };
    listeners.add(changed);
    changed();
    return () => {
      listeners.delete(changed);
    };
  }, []);
  return draft;
}
