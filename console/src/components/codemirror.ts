import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { css } from '@codemirror/lang-css';
import { html } from '@codemirror/lang-html';
import { json } from '@codemirror/lang-json';
import { liquid } from '@codemirror/lang-liquid';
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language';
import { EditorState, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

/** The languages that the editor highlights. */
export type Language = 'html' | 'css' | 'json' | 'liquid' | 'text';

const languages: Readonly<Record<Language, () => Extension>> = {
  ...{ html, css, json, liquid, text: () => [] },
};

const highlighting = HighlightStyle.define([
  { tag: [tags.tagName, tags.keyword, tags.propertyName], color: 'var(--blue)' },
  { tag: [tags.string, tags.attributeValue], color: 'var(--good)' },
  { tag: [tags.attributeName, tags.number, tags.bool, tags.null], color: 'var(--violet)' },
  { tag: [tags.comment, tags.meta], color: 'var(--quiet)' },
  { tag: tags.invalid, color: 'var(--bad)' },
]);

const theme = EditorView.theme({
  '&': { backgroundColor: 'var(--page)', color: 'var(--ink)', fontSize: '0.875rem' },
  '&.cm-focused': { outline: '2px solid var(--amber)', outlineOffset: '-2px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', maxHeight: '60vh', minHeight: '9rem' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { backgroundColor: 'var(--mud)', color: 'var(--quiet)', border: 'none' },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground': {
    backgroundColor: 'var(--mud) !important',
  },
  '.cm-matchingBracket': { backgroundColor: 'var(--glow) !important' },
});

/** A place in the text of an editor, which moves while somebody types before it. */
export interface Place {
  at: number;
  /** Ends its movements. */
  readonly end: () => void;
}

const places = new WeakMap<EditorView, Set<Place>>();

function placesIn(view: EditorView): Set<Place> {
  const known = places.get(view) ?? new Set();
  places.set(view, known);
  return known;
}

/** The place of the cursor. */
export function cursorPlace(view: EditorView): Place {
  return keepPlace(view, view.state.selection.main.head);
}

function keepPlace(view: EditorView, at: number): Place {
  const kept = placesIn(view);
  const place: Place = {
    at,
    end: () => {
      kept.delete(place);
    },
  };
  kept.add(place);
  return place;
}

/** Inserts a text at a place, and the next one behind it. A cursor at the place goes with it. */
export function insertAt(view: EditorView, place: Place, text: string): void {
  const { at } = place;
  const { empty: isCursor, head } = view.state.selection.main;
  view.dispatch({
    changes: { from: at, insert: text },
    ...(isCursor && head === at && { selection: { anchor: at + text.length } }),
    userEvent: 'input.paste',
  });
}

/** Makes an editor in a shadow root. */
export function createEditor(
  root: ShadowRoot,
  {
    label,
    value,
    language,
    isReadOnly,
    onInput,
    onFiles,
  }: {
    readonly label: string;
    readonly value: string;
    readonly language: Language;
    readonly isReadOnly: boolean;
    readonly onInput: (value: string) => void;
    /** Gets files that are dropped or pasted, with their place; without it, they are not taken. */
    readonly onFiles?: ((files: readonly File[], place: Place) => void) | undefined;
  },
): EditorView {
  const take = (data: DataTransfer | null, at: number, view: EditorView): boolean => {
    const files = [...(data?.files ?? [])];
    if (files.length === 0 || onFiles === undefined || view.state.readOnly) return false;
    onFiles(files, keepPlace(view, at));
    return true;
  };
  return new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: value,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        EditorView.lineWrapping,
        // Tab leaves the editor, so that the keyboard is not trapped in it.
        keymap.of([...defaultKeymap, ...historyKeymap]),
        languages[language](),
        syntaxHighlighting(highlighting),
        theme,
        EditorState.readOnly.of(isReadOnly),
        EditorView.contentAttributes.of({ tabindex: '0', 'aria-label': label }),
        EditorView.domEventHandlers({
          drop(event, view) {
            const at = view.posAtCoords({ x: event.clientX, y: event.clientY });
            const isTaken = take(event.dataTransfer, at ?? view.state.selection.main.head, view);
            if (isTaken) event.preventDefault();
            return isTaken;
          },
          paste: (event, view) => take(event.clipboardData, view.state.selection.main.head, view),
        }),
        EditorView.updateListener.of((update) => {
          for (const place of placesIn(update.view)) {
            place.at = update.changes.mapPos(place.at, 1);
          }
          if (update.docChanged) onInput(update.state.doc.toString());
        }),
      ],
    }),
  });
}
