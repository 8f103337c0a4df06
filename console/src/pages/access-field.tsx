import { call, may } from '../api/api.ts';
import { useLoad } from '../components/loading.ts';
import { Field } from '../components/ui.tsx';
import { texts } from '../texts.ts';

interface Configured {
  readonly sections: readonly { readonly section: string }[];
}

const prefix = 'access.';

/**
 * The access section of a page rule. It suggests the sections of the ini file to a key that may see
 * that; for others, the server names them when it refuses a name.
 */
export function AccessField({
  value,
  onValue,
  problems,
}: {
  value: string;
  onValue: (value: string) => void;
  problems: readonly string[];
}) {
  const { data } = useLoad(
    (signal) =>
      may('admin')
        ? call<Configured>('server.configuration', {}, { signal })
        : Promise.resolve<Configured>({ sections: [] }),
    [],
  );
  const names = (data?.sections ?? [])
    .filter(({ section }) => section.startsWith(prefix))
    .map(({ section }) => section.slice(prefix.length));
  return (
    <>
      <Field label={texts.editor.access} problems={problems}>
        <input
          type="text"
          list="access-sections"
          spellcheck={false}
          value={value}
          onInput={({ currentTarget }) => {
            onValue(currentTarget.value);
          }}
        />
      </Field>
      <datalist id="access-sections">
        {names.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </>
  );
}
