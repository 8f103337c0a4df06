import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import './tokens.css';
import './style.css';
import { onSession } from './api.ts';
import { Frame } from './frame.tsx';
import { closeLive } from './live.ts';
import { currentSession } from './session.ts';
import { SignIn } from './screens/sign-in.tsx';

function Console() {
  const [session, setSession] = useState(currentSession);
  useEffect(
    () =>
      onSession(() => {
        closeLive();
        setSession(currentSession());
      }),
    [],
  );
  return session === undefined ? <SignIn /> : <Frame session={session} />;
}

const root = document.getElementById('console');
if (root !== null) render(<Console />, root);
