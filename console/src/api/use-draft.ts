import { useEffect, useState } from 'preact/hooks';
import { onDraftChosen } from './draft.ts';
import { currentDraft, type ChosenDraft } from './session.ts';

/** The draft that the tab works in; the component is rendered again when it is another one. */
export function useDraft(): ChosenDraft | undefined {
  const [draft, setDraft] = useState(currentDraft);
  useEffect(() => {
    const changed = (): void => {
      setDraft(currentDraft());
    };
    changed();
    return onDraftChosen(changed);
  }, []);
  return draft;
}
