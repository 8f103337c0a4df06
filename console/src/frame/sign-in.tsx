import { useEffect, useState } from 'preact/hooks';
import { leaveForLogin, loginOffered, signIn } from '../api/api.ts';
import { texts } from '../texts.ts';
import { Fault } from '../components/ui.tsx';

/**
 * The sign-in with an API key, or by `[login]` if the server offers it; `linkError` says why a link
 * did not sign in.
 */
export function SignIn({ linkError }: { linkError: string }) {
  const [key, setKey] = useState('');
  const [error, setError] = useState<unknown>(() =>
    linkError === '' ? undefined : new Error(linkError),
  );
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = `${texts.signIn.title} · ${texts.product}`;
  }, []);
  const submit = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await signIn(key.trim());
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <p class="brand">
          <Mark />
          {texts.product}
        </p>
        <h1>{texts.signIn.title}</h1>
        <p class="lead">{texts.signIn.lead}</p>
        <label class="field">
          <span class="field-label">{texts.signIn.key}</span>
          <input
            type="password"
            name="apikey"
            autocomplete="off"
            spellcheck={false}
            required
            autofocus
            value={key}
            onInput={({ currentTarget }) => {
              setKey(currentTarget.value);
            }}
          />
        </label>
        <Fault error={error} />
        <button type="submit" class="main-button" disabled={isBusy}>
          {isBusy ? texts.signIn.busy : texts.signIn.submit}
        </button>
        <LoginButton />
        <p class="note">{texts.signIn.kept}</p>
      </form>
    </main>
  );
}

/** The way to the sign-in by `[login]`; nothing if the server offers none. */
function LoginButton() {
  const [path, setPath] = useState<string>();
  useEffect(() => {
    // Without an answer, the key is the way in.
    loginOffered().then(setPath, () => undefined);
  }, []);
  if (path === undefined) return null;
  return (
    <button
      type="button"
      class="quiet-button"
      onClick={() => {
        leaveForLogin(path);
      }}
    >
      {texts.signIn.login}
    </button>
  );
}

/** The mark of the product: a sign at a crossing of ways. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M14 3h4v5h8l4 4-4 4h-8v3h4v3H18v7h-4v-7H6l-4-4 4-4h8v-3H6V8h8z" />
    </svg>
  );
}
