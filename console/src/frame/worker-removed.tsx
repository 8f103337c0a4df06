import { useEffect } from 'preact/hooks';
import { texts } from '../texts.ts';
import { Mark } from './sign-in.tsx';

/** Names service workers that were removed; the console goes on in a new document. */
export function WorkerRemoved({ scripts }: { scripts: readonly string[] }) {
  useEffect(() => {
    document.title = `${texts.workers.title} · ${texts.product}`;
  }, []);
  return (
    <main class="sign-in">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          location.reload();
        }}
      >
        <p class="brand">
          <Mark />
          {texts.product}
        </p>
        <h1>{texts.workers.title}</h1>
        <p class="lead">{texts.workers.lead}</p>
        <ul>
          {scripts.map((script) => (
            <li key={script}>
              <code>{script}</code>
            </li>
          ))}
        </ul>
        <button type="submit" class="main-button" autofocus>
          {texts.workers.submit}
        </button>
        <p class="note">{texts.workers.note}</p>
      </form>
    </main>
  );
}
