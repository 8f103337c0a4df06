import { useCallback, useState } from 'preact/hooks';
import { signOut } from '../api/api.ts';
import { useInterval } from '../api/follow.ts';
import { useRoute } from '../route.ts';
import { texts } from '../texts.ts';
import { ScreenHead } from '../components/ui.tsx';
import { DeliveryPanes } from './deliveries.tsx';
import './webhooks.css';

const t = texts.partner;
const refreshMs = 5000;

/** What a partner sees: the deliveries of one webhook, and nothing that changes anything. */
export function Partner({ hook }: { hook: string }) {
  const route = useRoute();
  const [turn, setTurn] = useState(0);
  const refresh = useCallback(() => {
    setTurn((before) => before + 1);
  }, []);
  useInterval(refresh, refreshMs);
  const path = route.path.startsWith('/partner/') ? route.path : `/partner/${hook}`;
  return (
    <main id="content" class="partner" tabIndex={-1}>
      <ScreenHead title={t.title} lead={t.lead} shown={['webhook.deliveries', { id: hook }]}>
        <button type="button" class="quiet-button" onClick={() => void signOut()}>
          {texts.nav.signOut}
        </button>
      </ScreenHead>
      <DeliveryPanes hook={hook} route={{ ...route, path }} turn={turn} onReplay={refresh} />
    </main>
  );
}
