import { useEffect, useRef, useState } from 'preact/hooks';
import type { EditorView } from '@codemirror/view';
import type { Language, Place } from './codemirror.ts';
import { FileButton } from './file-button.tsx';
import { texts } from '../texts.ts';
import { Fault } from './ui.tsx';

const t = texts.assets;

/**
 * Stores a file, and resolves to the text that shows it. `onProgress` gets the share that is sent,
 * from 0 to 1.
 */
export type InsertFile = (file: File, onProgress: (share: number) => void) => Promise<string>;

interface CodeEditorProps {
  readonly label: string;
  readonly value: string;
  readonly language: Language;
  readonly isReadOnly?: boolean;
  readonly onInput: (value: string) => void;
  /** What files become that are dropped, pasted or chosen; without it, they are not taken. */
  readonly insertFile?: InsertFile | undefined;
}

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
  insertFile,
}: CodeEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView | undefined>(undefined);
  const text = useRef(value);
  const { said, error, insert } = useInsertedFiles(editor, insertFile);
  const latest = useRef({ onInput, insert });
  latest.current = { onInput, insert };
  const takesFiles = insertFile !== undefined && !isReadOnly;
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
          latest.current.onInput(changed);
        },
        ...(takesFiles && {
          onFiles: (files, at) => {
            latest.current.insert(files, at);
          },
        }),
      });
    });
    return () => {
      isGone = true;
      editor.current?.destroy();
      editor.current = undefined;
    };
  }, [language, isReadOnly, takesFiles]);
  return (
    <>
      <div ref={place} class="code" />
      {takesFiles ? (
        <p class="actions">
          <FileButton
            label={t.insert}
            onFiles={(files) => {
              insert(files);
            }}
          />
          <span class="note" role="status">
            {said}
          </span>
        </p>
      ) : null}
      <Fault error={error} />
    </>
  );
}

/** Inserts files one after the other; with what the last one said. */
function useInsertedFiles(
  editor: { readonly current: EditorView | undefined },
  insertFile: InsertFile | undefined,
) {
  const [said, setSaid] = useState('');
  const [error, setError] = useState<unknown>();
  const last = useRef<Promise<void>>(Promise.resolve());
  const insertOne = async (file: File, place: Place): Promise<void> => {
    if (insertFile === undefined) return;
    const { name } = file;
    setSaid(t.inserting(name, 0));
    const text = await insertFile(file, (share) => {
      setSaid(t.inserting(name, Math.floor(share * 100)));
    });
    const view = editor.current;
    // If a person has left the editor meanwhile, the file is in the library.
    if (view === undefined) return;
    const { insertAt } = await import('./codemirror.ts');
    insertAt(view, place, `${text}\n`);
    setSaid(t.inserted(name));
  };
  const insert = (files: readonly File[], given?: Place): void => {
    setError(undefined);
    last.current = last.current.then(async () => {
      const { cursorPlace } = await import('./codemirror.ts');
      const view = editor.current;
      if (view === undefined) return;
      const place = given ?? cursorPlace(view);
      try {
        for (const file of files) await insertOne(file, place);
      } catch (failure) {
        setSaid('');
        setError(failure);
      }
      place.end();
    });
  };
  return { said, error, insert };
}
