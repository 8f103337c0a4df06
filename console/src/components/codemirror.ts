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

/** Makes an editor in a shadow root. */
export function createEditor(
  root: ShadowRoot,
  {
    label,
    value,
    language,
    isReadOnly,
    onInput,
  }: {
    readonly label: string;
    readonly value: string;
    readonly language: Language;
    readonly isReadOnly: boolean;
    readonly onInput: (value: string) => void;
  },
): EditorView {
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
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onInput(update.state.doc.toString());
        }),
      ],
    }),
  });
}
