import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { call, firstOrigin, isBound } from '../api/api.ts';
import { chooseDraft } from '../api/draft.ts';
import { currentDraft, type ChosenDraft } from '../api/session.ts';
import { useAction, useLoad } from '../components/loading.ts';
import { Busy, Fault, Field, ScreenHead } from '../components/ui.tsx';
import { goTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { useFind, type Found, type Search } from './find.ts';
import { FoundPages } from './found-pages.tsx';
import './replace.css';

const t = texts.replace;
const parts = ['content', 'title', 'data', 'targets', 'headers'] as const;
const flags = ['ignore_case', 'whole_words', 'regex'] as const;
/** Drafts that the screen offers; the screen of drafts has all. */
const offeredMax = 100;

/** Finds a text in many pages, shows each place, and replaces it in a draft. */
export function Replace({ route }: { route: Route }) {
  const [search, setSearch] = useState<Search>(() => ({
    ...{ find: route.params.get('find') ?? '', with: '', parts },
    ...{ regex: false, ignore_case: false, whole_words: false },
    ...(isBound() && { origin: firstOrigin() }),
  }));
  const [draft, setDraft] = useState(currentDraft()?.id ?? '');
  const { found, find, forget, error, isRunning, run } = useFind();
  const change = (members: Partial<Search>): void => {
    forget();
    setSearch((before) => ({ ...before, ...members }));
  };
  return (
    <>
      <ScreenHead
        title={t.title}
        lead={t.lead}
        back={{ href: '#/pages', name: texts.nav.pages }}
        shown={['userinterface.replace', search]}
      />
      <form
        class="replace-form"
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => find(search, draft === '' ? undefined : draft));
        }}
      >
        <Words search={search} onChange={change} />
        <Where search={search} onChange={change} />
        <DraftChoice
          draft={draft}
          onDraft={(id) => {
            forget();
            setDraft(id);
          }}
        />
        <p>
          <button type="submit" class="main-button" disabled={isRunning || search.find === ''}>
            {t.findButton}
          </button>
        </p>
      </form>
      <Fault error={error} />
      {isRunning ? (
        <Busy text={t.searching(found?.examined ?? 0, found?.pages.length ?? 0)} />
      ) : null}
      {found === undefined || isRunning || error !== undefined ? null : (
        <Chosen key={JSON.stringify(found.search)} found={found} onForget={forget} />
      )}
    </>
  );
}

interface SearchProps {
  readonly search: Search;
  readonly onChange: (members: Partial<Search>) => void;
}

function Words({ search, onChange }: SearchProps) {
  return (
    <>
      {(['find', 'with'] as const).map((name) => (
        <Field key={name} label={t[name]}>
          <textarea
            rows={1}
            class="mono"
            spellcheck={false}
            maxLength={name === 'find' ? 1000 : 10_000}
            value={search[name]}
            onInput={({ currentTarget }) => {
              onChange({ [name]: currentTarget.value });
            }}
          />
        </Field>
      ))}
      <div class="replace-flags">
        {flags.map((name) => (
          <label key={name} class="check">
            <input
              type="checkbox"
              checked={search[name]}
              onChange={({ currentTarget }) => {
                onChange({ [name]: currentTarget.checked });
              }}
            />
            {t.flags[name]}
          </label>
        ))}
      </div>
      {search.regex ? <p class="note">{t.regexHint}</p> : null}
    </>
  );
}

/** Which parts of which pages. */
function Where({ search, onChange }: SearchProps) {
  const { parts: chosen } = search;
  return (
    <details>
      <summary>{t.where(chosen.length === parts.length, search.path ?? '')}</summary>
      <fieldset class="replace-flags">
        <legend>{t.parts}</legend>
        {parts.map((part) => (
          <label key={part} class="check">
            <input
              type="checkbox"
              checked={chosen.includes(part)}
              disabled={chosen.length === 1 && chosen.includes(part)}
              onChange={({ currentTarget: { checked } }) => {
                const others = parts.filter((one) => one !== part && chosen.includes(one));
                onChange({ parts: checked ? [...others, part] : others });
              }}
            />
            {t.partNames[part]}
          </label>
        ))}
      </fieldset>
      {(['path', 'origin'] as const).map((name) => (
        <Field key={name} label={t[name]}>
          <input
            type="text"
            spellcheck={false}
            placeholder={name === 'path' ? '/' : 'https://www.example.com'}
            value={search[name] ?? ''}
            onInput={({ currentTarget: { value } }) => {
              onChange({ [name]: value === '' ? undefined : value });
            }}
          />
        </Field>
      ))}
    </details>
  );
}

function DraftChoice({ draft, onDraft }: { draft: string; onDraft: (id: string) => void }) {
  const { data } = useLoad(
    (signal) =>
      call<{ rows: readonly ChosenDraft[] }>('draft.list', { limit: offeredMax }, { signal }),
    [],
  );
  const own = currentDraft();
  const open = data?.rows ?? [];
  const isListed = own === undefined || open.some(({ id }) => id === own.id);
  return (
    <Field label={t.draft}>
      <select
        value={draft}
        onChange={({ currentTarget }) => {
          onDraft(currentTarget.value);
        }}
      >
        <option value="">{t.newDraft}</option>
        {(isListed ? open : [own, ...open]).map(({ id, name }) => (
          <option key={id} value={id}>
            {texts.drafts.inDraft(name)}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** What was found, the choice of pages, and the button that replaces in them. */
function Chosen({ found, onForget }: { found: Found; onForget: () => void }) {
  const { search, pages, examined, isCut } = found;
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [name, setName] = useState(t.draftName(search.find, search.with));
  const { error, isRunning, run } = useAction(() => undefined);
  const replace = useReplace(found, name);
  const chosen = pages.filter(({ id, problem }) => problem === undefined && !left.has(id));
  const said = useRef<HTMLParagraphElement>(null);
  // On a phone the form fills the screen: what was found would be out of sight.
  useLayoutEffect(() => {
    said.current?.scrollIntoView({ block: isInView(said.current) ? 'nearest' : 'center' });
  }, []);
  if (pages.length === 0) {
    return (
      <p ref={said} class="empty">
        {t.nothing(examined)}
      </p>
    );
  }
  return (
    <section>
      <p ref={said} role="status">
        {t.found(pages, examined)}
      </p>
      {isCut ? <p class="note">{t.cut}</p> : null}
      <form
        class="replace-bar"
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => replace(chosen));
        }}
      >
        {found.draft === undefined ? (
          <Field label={t.draftLabel}>
            <input
              type="text"
              required
              maxLength={128}
              value={name}
              onInput={({ currentTarget }) => {
                setName(currentTarget.value);
              }}
            />
          </Field>
        ) : null}
        <button type="submit" class="main-button" disabled={isRunning || chosen.length === 0}>
          {isRunning ? t.replacing : t.replace(chosen.length)}
        </button>
      </form>
      <Fault error={error} {...(error !== undefined && { onRetry: onForget })} />
      <FoundPages pages={pages} left={left} onLeft={setLeft} />
    </section>
  );
}

function isInView(element: Element): boolean {
  return element.getBoundingClientRect().bottom <= window.innerHeight;
}

/** Replaces in pages: it makes the draft, if there is none yet, and leads to its comparison. */
function useReplace({ search, draft }: Found, name: string) {
  // A second attempt writes into the draft that the first one has made.
  const made = useRef<ChosenDraft>(undefined);
  const [vk] = useState(() => crypto.randomUUID());
  return async (pages: Found['pages']): Promise<string> => {
    if (draft === undefined && made.current?.name !== name) {
      const { id } = await call<ChosenDraft>('draft.insert', { name });
      made.current = { id, name };
    }
    const id = draft ?? made.current?.id ?? '';
    const v = { ...search, pages: Object.fromEntries(pages.map((one) => [one.id, one.seq])) };
    await call('userinterface.replace', v, { vk: `${vk} ${pages.length}`, draft: id });
    if (made.current !== undefined) chooseDraft(made.current);
    goTo(`/drafts/${id}`, { compare: 'changes' });
    return '';
  };
}
