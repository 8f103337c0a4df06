import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { goTo } from '../route.ts';
import { texts } from '../texts.ts';
import type { RowPages } from './loading.ts';
import { Busy, Fault, StaleList } from './ui.tsx';
import { useUrlValue } from './url-field.tsx';

/** The states of a list: why it failed, that it loads, that it has no rows, and its rows. */
export function ListFrame({
  pages: { rows, isEnd, isLoading, error, more, ...stale },
  empty,
  emptyHint,
  busy,
  hasMore = false,
  children,
}: {
  pages: RowPages<unknown>;
  empty: string;
  emptyHint?: string | undefined;
  busy?: string;
  /** Whether a button loads more rows; a list that scrolls loads them by itself. */
  hasMore?: boolean;
  children: ComponentChildren;
}) {
  return (
    <>
      <Fault error={error} onRetry={stale.reload} />
      <StaleList {...stale} />
      {isLoading && rows.length === 0 ? <Busy {...(busy !== undefined && { text: busy })} /> : null}
      {isEnd && !isLoading && rows.length === 0 ? (
        <div class="empty">
          <h2>{empty}</h2>
          {emptyHint === undefined ? null : <p>{emptyHint}</p>}
        </div>
      ) : (
        children
      )}
      {hasMore && !isEnd && error === undefined ? (
        <button type="button" onClick={more}>
          {texts.states.more}
        </button>
      ) : null}
    </>
  );
}

interface Choice {
  /** Its parameter in the URL. */
  readonly name: string;
  readonly label: string;
  readonly options: readonly (readonly [value: string, name: string])[];
}

interface ListSearchProps {
  /** The screen, and what its URL has now. */
  readonly path: string;
  readonly params: Readonly<Record<string, string | undefined>>;
  readonly label: string;
  readonly choices: readonly Choice[];
  readonly check?: { readonly name: string; readonly label: string };
  /** Whether the list follows each key; otherwise the text goes to the URL by Enter. */
  readonly isInstant?: boolean;
}

/** The text of a list's search, which its URL has, too; `show` goes to the URL of a change. */
function useListSearch({ path, params, isInstant = false }: ListSearchProps) {
  const { text = '' } = params;
  const { value: typed, setValue: setTyped, sent } = useUrlValue(text);
  // Texts that are typed one after the other are one entry of the browser's history.
  const isTyping = useRef(false);
  const show = (changed: Readonly<Record<string, string>>, replace = false): void => {
    sent(changed.text ?? typed);
    goTo(path, { ...params, text: typed, ...changed }, replace);
  };
  useEffect(() => {
    if (!isInstant || typed === text) return undefined;
    const timer = setTimeout(() => {
      show({}, isTyping.current);
      isTyping.current = true;
    }, 150);
    return () => {
      clearTimeout(timer);
    };
  });
  const settle = (): void => {
    isTyping.current = false;
  };
  return { typed, setTyped, show, settle };
}

/** The search of a list: a text and choices, which the URL has, so that the way back leads to them. */
export function ListSearch(props: ListSearchProps) {
  const { params, label, choices, check } = props;
  const { typed, setTyped, show, settle } = useListSearch(props);
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        if (typed !== (params.text ?? '')) show({});
      }}
    >
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        value={typed}
        onBlur={settle}
        onInput={({ currentTarget }) => {
          setTyped(currentTarget.value);
        }}
      />
      {choices.map((choice) => (
        <select
          key={choice.name}
          aria-label={choice.label}
          value={params[choice.name] ?? ''}
          onChange={({ currentTarget }) => {
            show({ [choice.name]: currentTarget.value });
          }}
        >
          {choice.options.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      ))}
      {check === undefined ? null : (
        <label class="check">
          <input
            type="checkbox"
            checked={(params[check.name] ?? '') !== ''}
            onChange={({ currentTarget }) => {
              show({ [check.name]: currentTarget.checked ? 'yes' : '' });
            }}
          />
          {check.label}
        </label>
      )}
    </form>
  );
}
