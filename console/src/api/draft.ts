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

/** Calls a listener when the tab works in another draft; returns a function that ends this. */
export function onDraftChosen(listener: () => void): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}
