import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import './tokens.css';
import './style.css';
import { onSession, signInByLogin } from './api/api.ts';
import { Frame } from './frame/frame.tsx';
import { lazy } from './components/lazy.tsx';
import { closeLive } from './api/live.ts';
import { partnerHook, signInByLink } from './api/partner-link.ts';
import { currentSession } from './api/session.ts';
import { removeWorkers } from './api/workers.ts';
import { SignIn } from './frame/sign-in.tsx';
import { WorkerRemoved } from './frame/worker-removed.tsx';

const Partner = lazy(() => import('./webhooks/partner.tsx').then(({ Partner: one }) => one));

function Console({ linkError }: { linkError: string }) {
  const [session, setSession] = useState(currentSession);
  useEffect(
    () =>
      onSession(() => {
        closeLive();
        setSession(currentSession());
      }),
    [],
  );
  if (session === undefined) return <SignIn linkError={linkError} />;
  const hook = partnerHook(session);
  return (
    <>
      {linkError === '' ? null : (
        <p class="fault" role="alert">
          {linkError}
        </p>
      )}
      {hook === undefined ? <Frame session={session} /> : <Partner hook={hook} />}
    </>
  );
}

async function show(root: HTMLElement): Promise<void> {
  const scripts = await removeWorkers();
  if (scripts.length > 0) {
    render(<WorkerRemoved scripts={scripts} />, root);
    return;
  }
  const loginError = await signInByLogin();
  render(<Console linkError={loginError === '' ? await signInByLink() : loginError} />, root);
}

/**
 * The console frames only the page for previews: another page of the site would not have its
 * policy. Only here is the origin known that the browser uses.
 */
function limitFrames(): void {
  const policy = document.createElement('meta');
  policy.httpEquiv = 'Content-Security-Policy';
  policy.content = `frame-src ${new URL('preview.html', location.href).href}`;
  document.head.append(policy);
}

limitFrames();
const root = document.getElementById('console');
if (root !== null) {
  void show(root);
  addEventListener('hashchange', () => {
    if (location.hash.startsWith('#/partner/')) void show(root);
  });
}
