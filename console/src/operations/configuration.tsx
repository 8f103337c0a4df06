import { call } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import { goTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { useLoad } from '../components/loading.ts';
import { Busy, Fault, ScreenHead, When } from '../components/ui.tsx';

const t = texts.configuration;

interface Key {
  readonly key: string;
  readonly values: readonly string[];
  readonly line: number | null;
}

interface Section {
  readonly section: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly keys: readonly Key[];
}

interface ConfigurationInUse {
  readonly file: string;
  readonly since: string;
  readonly state: 'current' | 'broken';
  readonly restart_needed: readonly string[];
  readonly problems: readonly {
    readonly file: string;
    readonly line: number;
    readonly message: string;
  }[];
  readonly warnings: readonly string[];
  readonly sections: readonly Section[];
}

/** The configuration in use: each key with its value and line, and what is wrong with the file. */
export function Configuration({ route: { params } }: { route: Route }) {
  const sought = params.get('text') ?? '';
  const showsDefaults = params.get('defaults') !== 'no';
  const loaded = useLoad(
    (signal) => call<ConfigurationInUse>('server.configuration', {}, { signal }),
    [],
    useLive(['configuration']),
  );
  const { data } = loaded;
  const set = (name: string, value: string): void => {
    goTo('/operations/configuration', { ...Object.fromEntries(params), [name]: value }, true);
  };
  const lower = sought.toLowerCase();
  const sections = (data?.sections ?? []).flatMap((section) => {
    const keys = section.keys.filter(
      ({ key, values, line }) =>
        (showsDefaults || line !== null) &&
        `[${section.section}] ${key} ${values.join(' ')}`.toLowerCase().includes(lower),
    );
    return keys.length === 0 ? [] : [{ ...section, keys }];
  });
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['server.configuration', {}]} />
      <Fault error={loaded.error} onRetry={loaded.reload} />
      {data === undefined && loaded.error === undefined ? <Busy /> : null}
      {data === undefined ? null : <State configuration={data} />}
      <form
        class="filters"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
        }}
      >
        <label class="inline-field">
          {t.search}
          <input
            type="search"
            spellcheck={false}
            value={sought}
            onInput={({ currentTarget }) => {
              set('text', currentTarget.value);
            }}
          />
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={showsDefaults}
            onChange={({ currentTarget }) => {
              set('defaults', currentTarget.checked ? '' : 'no');
            }}
          />
          {t.defaults}
        </label>
      </form>
      {sections.map((section) => (
        <SectionView key={section.section} section={section} main={data?.file ?? ''} />
      ))}
    </>
  );
}

function State({ configuration }: { configuration: ConfigurationInUse }) {
  const { file, since, state, problems, warnings, restart_needed: restart } = configuration;
  return (
    <>
      <p>
        <code>{file}</code>{' '}
        <span class={state === 'current' ? 'tag good' : 'tag bad'}>{t.states[state]}</span>{' '}
        <span class="quiet">
          {t.since} <When time={since} />
        </span>
      </p>
      {problems.length === 0 ? null : (
        <div class="fault" role="alert">
          {problems.map(({ file: wrong, line, message }) => (
            <p key={`${wrong} ${line} ${message}`}>
              <b>
                <code>{wrong}</code>, {t.line(line)}:{' '}
              </b>
              {message}
            </p>
          ))}
        </div>
      )}
      {restart.length + warnings.length === 0 ? null : (
        <div class="fault soft">
          {restart.map((name) => (
            <p key={name}>{t.restart(name)}</p>
          ))}
          {warnings.map((warning) => (
            <p key={warning}>{warning}</p>
          ))}
        </div>
      )}
    </>
  );
}

function SectionView({
  section: { section, file, line, keys },
  main,
}: {
  section: Section;
  main: string;
}) {
  return (
    <section class="ini-section">
      <h2>
        [{section}] {line === null ? null : <span class="tag">{t.line(line)}</span>}{' '}
        {file === null || file === main ? null : <code class="quiet">{file}</code>}
      </h2>
      <div class="grid-box">
        <table class="grid" aria-label={section}>
          <tbody>
            {keys.map(({ key, values, line: at }) => (
              <tr key={key} class={at === null ? 'default' : ''}>
                <td>
                  <code>{key}</code>
                </td>
                <td>
                  {values.length === 0 ? <span class="quiet">–</span> : null}
                  {values.map((value) => (
                    <div key={value}>
                      <code>{value}</code>
                    </div>
                  ))}
                </td>
                <td class="number quiet">{at === null ? t.isDefault : t.line(at)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
