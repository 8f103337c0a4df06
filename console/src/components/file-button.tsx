import { useRef } from 'preact/hooks';

/** A button that lets a person choose files. */
export function FileButton({
  label,
  isMain = false,
  onFiles,
}: {
  label: string;
  isMain?: boolean;
  onFiles: (files: readonly File[]) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        class={isMain ? 'main-button' : 'quiet-button'}
        onClick={() => {
          input.current?.click();
        }}
      >
        {label}
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={({ currentTarget }) => {
          onFiles([...(currentTarget.files ?? [])]);
          // The same file can be chosen again.
          currentTarget.value = '';
        }}
      />
    </>
  );
}
