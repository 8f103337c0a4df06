import { useState } from 'preact/hooks';
import { tourSignal } from './help-signals.ts';
import { texts } from '../texts.ts';
import './help.css';

const t = texts.tour;

/** Where this browser remembers that somebody took the tour or did not want it. */
const seenKey = 'waymark console tour';

function hasSeen(): boolean {
  return localStorage.getItem(seenKey) !== null;
}

/** Offers the tour once in a browser, on the overview. */
export function TourOffer() {
  const [isOffered, setOffered] = useState(() => !hasSeen());
  if (!isOffered) return null;
  const answer = (isWanted: boolean) => () => {
    localStorage.setItem(seenKey, 'seen');
    setOffered(false);
    if (isWanted) tourSignal.send();
  };
  return (
    <section class="welcome" aria-label={t.title}>
      <p>{t.offer}</p>
      <button type="button" class="main-button" onClick={answer(true)}>
        {t.start}
      </button>
      <button type="button" onClick={answer(false)}>
        {t.skip}
      </button>
    </section>
  );
}
