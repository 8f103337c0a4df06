import { useEffect, useRef } from 'preact/hooks';
import type { EditorView } from '@codemirror/view';
import type { Language } from './codemirror.ts';

/**
 * CodeMirror in a shadow root, where it adds its styles by the CSSOM: the policy of the console
 * allows no style elements. `value` is the text at first: the editor has its own state from then
 * on, and says each change.
 */
export function CodeEditor({
  label,
  value,
  language,
  isReadOnly = false,
  onInput,
}: {
  label: string;
  value: string;
  language: Language;
  isReadOnly?: boolean;
  onInput: (value: string) => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView | undefined>(undefined);
  const latest = useRef(onInput);
  const text = useRef(value);
  latest.current = onInput;
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    let isGone = false;
    void import('./codemirror.ts').then(({ createEditor }) => {
      if (isGone) return;
      const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
      editor.current = createEditor(root, {
        ...{ label, value: text.current, language, isReadOnly },
        onInput: (changed) => {
          text.current = changed;
          latest.current(changed);
        },
      });
    });
    return () => {
      isGone = true;
      editor.current?.destroy();
      editor.current = undefined;
    };
  }, [language, isReadOnly]);
  return <div ref={place} class="code" />;
}
