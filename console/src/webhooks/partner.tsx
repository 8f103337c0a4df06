import { useCallback, useState } from 'preact/hooks';
import { signOut } from '../api/api.ts';
import { useConnection, useLive } from '../api/live.ts';
import { useRoute } from '../route.ts';
import { texts } from '../texts.ts';
import { Disconnected, ScreenHead } from '../components/ui.tsx';
import { DeliveryPanes } from './deliveries.tsx';
import './webhooks.css';

const t = texts.partner;

/** What a partner sees: the deliveries of one webhook, and nothing that changes anything. */
export function Partner({ hook }: { hook: string }) {
  const route = useRoute();
  const [turn, setTurn] = useState(0);
  const refresh = useCallback(() => {
    setTurn((before) => before + 1);
  }, []);
  const live = useLive(['deliveries'], hook);
  const lostAt = useConnection();
  const path = route.path.startsWith('/partner/') ? route.path : `/partner/${hook}`;
  return (
    <main id="content" class="partner" tabIndex={-1}>
      <Disconnected since={lostAt} />
      <ScreenHead title={t.title} lead={t.lead} shown={['webhook.deliveries', { id: hook }]}>
        <button type="button" class="quiet-button" onClick={() => void signOut()}>
          {texts.nav.signOut}
        </button>
      </ScreenHead>
      <DeliveryPanes
        hook={hook}
        route={{ ...route, path }}
        turn={turn}
        live={live}
        onReplay={refresh}
      />
    </main>
  );
}
