import { useCallback, useState } from 'preact/hooks';
import { call, may, type JsonObject } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import { partnerLink } from '../api/partner-link.ts';
import type { Route } from '../route.ts';
import { texts } from '../texts.ts';
import { useAction, useLoad } from '../components/loading.ts';
import {
  Busy,
  FailedScreen,
  Fault,
  msText,
  ScreenHead,
  shortCount,
  Tile,
  When,
} from '../components/ui.tsx';
import { DeliveryPanes } from './deliveries.tsx';
import { NextBatch, StateTag, type Health } from './health.tsx';

const t = texts.webhooks;

interface Hook extends JsonObject {
  readonly id: string;
  readonly active: boolean;
}

/** One webhook: its state, what can be done with it, and its deliveries. */
export function WebhookView({ id, route }: { id: string; route: Route }) {
  const live = useLive(['deliveries', 'changes'], id);
  const hook = useLoad((signal) => call<Hook>('webhook.read', { id }, { signal }), [id], live);
  const health = useLoad(
    (signal) => call<{ rows: readonly Health[] }>('webhook.health', { id }, { signal }),
    [id],
    live,
  );
  const [turn, setTurn] = useState(0);
  const reload = useCallback(() => {
    hook.reload();
    health.reload();
    setTurn((before) => before + 1);
  }, []);
  const [state] = health.data?.rows ?? [];
  const title = state?.name ?? state?.url ?? t.title;
  if (hook.data === undefined && hook.error !== undefined) {
    const back = { href: '#/webhooks', name: t.all };
    return <FailedScreen {...{ title, back }} error={hook.error} onRetry={reload} />;
  }
  return (
    <>
      <ScreenHead
        title={title}
        back={{ href: '#/webhooks', name: t.all }}
        shown={['webhook.deliveries', { id }]}
      >
        <a class="quiet-button" href={`#/webhooks/${id}/edit`}>
          {t.edit}
        </a>
      </ScreenHead>
      <Fault error={hook.error ?? health.error} onRetry={reload} />
      {state === undefined ? hook.error === undefined && <Busy /> : <Facts health={state} />}
      {hook.data === undefined ? null : <Waits hook={hook.data} />}
      {hook.data === undefined ? null : <Actions hook={hook.data} name={title} onDone={reload} />}
      <h2>{t.deliveries}</h2>
      <DeliveryPanes hook={id} route={route} turn={turn} live={live} onReplay={reload} />
    </>
  );
}

function Facts({ health }: { health: Health }) {
  const { recent, queued, waiting, oldest } = health;
  return (
    <>
      <p class="lead endpoint">
        <code>
          {health.method} {health.url}
        </code>{' '}
        <StateTag state={health.state} />
        <br />
        {t.events}: {health.event.join(', ')}
      </p>
      <NextBatch health={health} />
      <dl class="tiles">
        <Tile name={t.seq} value={health.seq.toLocaleString()} />
        <Tile name={t.backlog} value={shortCount(queued + waiting)}>
          {t.backlogOf(queued.toLocaleString(), waiting.toLocaleString())}
          {oldest === undefined ? null : (
            <>
              , {t.oldest} <When time={oldest} />
            </>
          )}
        </Tile>
        <Tile
          name={t.delivered}
          value={
            recent.attempts === 0 ? '–' : `${recent.attempts - recent.failed}/${recent.attempts}`
          }
          isBad={recent.failed > 0}
        >
          {recent.attempts === 0
            ? t.noDeliveries
            : t.recent(recent.attempts - recent.failed, recent.attempts)}
        </Tile>
        <Tile name={t.median} value={recent.attempts === 0 ? '–' : msText(recent.ms)} />
      </dl>
    </>
  );
}

/** The fields that pause the hook until somebody corrects them. */
function Waits({ hook: { id, waits } }: { hook: Hook }) {
  if (!Array.isArray(waits)) return null;
  return (
    <div class="fault">
      <p>
        {t.waits(waits.join(', '))} <a href={`#/webhooks/${id}/edit`}>{t.edit}</a>
      </p>
    </div>
  );
}

function Actions({
  hook: { id, active },
  name,
  onDone,
}: {
  hook: Hook;
  name: string;
  onDone: () => void;
}) {
  const { error, said, run } = useAction(onDone);
  const [link, setLink] = useState('');
  const act = (operation: string, text: string) => () =>
    void run(async () => {
      await call(operation, { id });
      return text;
    });
  const rotate = async (): Promise<string> => {
    if (!confirm(t.rotateConfirm)) return '';
    const { secret } = await call<{ secret: string }>('webhook.rotate', { id });
    return `${t.secret} ${secret}`;
  };
  const replayFailed = async (): Promise<string> => {
    const { deliveries } = await call<{ deliveries: number }>('webhook.replay', {
      ...{ id, failed: true },
    });
    return t.replayedFailed(deliveries);
  };
  const makeLink = async (): Promise<string> => {
    setLink(await partnerLink(id, name));
    return t.partnerMade;
  };
  return (
    <>
      <p class="actions">
        <button type="button" disabled={!active} onClick={act('webhook.test', t.tested)}>
          {t.test}
        </button>
        <button
          type="button"
          onClick={act(
            active ? 'webhook.pause' : 'webhook.resume',
            active ? t.isPaused : t.resumed,
          )}
        >
          {active ? t.pause : t.resume}
        </button>
        <button type="button" onClick={() => void run(replayFailed)}>
          {t.replayFailed}
        </button>
        <button type="button" onClick={() => void run(rotate)}>
          {t.rotate}
        </button>
        {may('admin') ? (
          <button type="button" onClick={() => void run(makeLink)}>
            {t.partnerLink}
          </button>
        ) : null}
      </p>
      <p role="status">{said}</p>
      {link === '' ? null : (
        <p>
          <code class="secret">{link}</code>
        </p>
      )}
      <Fault error={error} />
    </>
  );
}
