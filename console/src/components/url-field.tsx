import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/**
 * The value of a control that the URL has, too, once it is sent there. The control keeps its own
 * value whenever the screen renders, such as when a list has loaded, and takes that of the URL when
 * something else has changed it: a link, or the buttons of the browser. `sent` says what the control
 * is about to write into the URL, so that its return changes nothing. Values with the same `keyOf` are
 * the same.
 */
export function useUrlValue<T>(given: T, keyOf: (value: T) => unknown = (value) => value) {
  const [value, setValue] = useState(given);
  const key = keyOf(given);
  const last = useRef(key);
  // Without a pause after the rendering: a key that is pressed in it would be lost.
  useLayoutEffect(() => {
    if (key === last.current) return;
    last.current = key;
    setValue(given);
  }, [key]);
  const sent = (next: T): void => {
    last.current = keyOf(next);
  };
  return { value, setValue, sent };
}

interface SharedProps {
  readonly value: string;
  readonly onSend: (value: string) => void;
}

type UrlInputProps = SharedProps &
  (
    | { readonly type: 'text' }
    | { readonly type: 'search'; placeholder?: string; inputMode?: 'text' | 'decimal' }
    | { readonly type: 'datetime-local'; step: string }
  );

/** An input whose text goes to the URL by Enter, or when a person leaves it. */
export function UrlInput({ value: given, onSend, ...attributes }: UrlInputProps) {
  const { value, setValue, sent } = useUrlValue(given);
  return (
    <input
      {...attributes}
      spellcheck={false}
      value={value}
      onInput={({ currentTarget }) => {
        setValue(currentTarget.value);
      }}
      onChange={({ currentTarget }) => {
        sent(currentTarget.value);
        onSend(currentTarget.value);
      }}
    />
  );
}
