import { useRef, useState } from 'preact/hooks';
import { call, mayDesign } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import { FileButton } from '../components/file-button.tsx';
import { useAction, usePages } from '../components/loading.ts';
import { bytesText, Fault, ScreenHead } from '../components/ui.tsx';
import { ListFrame, ListSearch } from '../components/list.tsx';
import { addressOf } from '../pages/address.ts';
import type { Route } from '../route.ts';
import { texts } from '../texts.ts';
import { isReachable, pageOf, type Asset, type AssetUse } from './asset-files.ts';
import { Thumbnail } from './thumbnail.tsx';
import { UploadList, useUploads } from './uploads.tsx';
import './assets.css';

const t = texts.assets;

interface AssetPage {
  readonly rows: readonly Asset[];
  readonly next: string | null;
  readonly widths: readonly number[];
}

/** The filters of the list, as asset.list takes them. */
interface Query {
  readonly text?: string;
  readonly type?: string;
  readonly unused?: true;
}

function queryOf({ params }: Route): Query {
  const [text = '', type = ''] = ['text', 'type'].map((name) => params.get(name) ?? '');
  return {
    ...(text !== '' && { text }),
    ...(type !== '' && { type }),
    ...(params.has('unused') && { unused: true }),
  };
}

/** The pictures and other files of pages: to find, upload and delete them. */
export function Assets({ route }: { route: Route }) {
  const query = queryOf(route);
  const [isOver, setOver] = useState(false);
  const [uploaded, setUploaded] = useState(0);
  const { add, ...uploads } = useUploads(() => {
    setUploaded((before) => before + 1);
  });
  const canWrite = mayDesign();
  const over = (isHere: boolean) => (event: DragEvent) => {
    if (!canWrite || event.dataTransfer?.types.includes('Files') !== true) return;
    event.preventDefault();
    setOver(isHere);
  };
  return (
    <div
      class={isOver ? 'assets is-over' : 'assets'}
      onDragOver={over(true)}
      onDragLeave={over(false)}
      onDrop={(event) => {
        over(false)(event);
        if (canWrite) add([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <ScreenHead title={t.title} lead={t.lead} shown={['asset.list', query]}>
        {canWrite ? <FileButton label={t.choose} isMain onFiles={add} /> : null}
      </ScreenHead>
      {isOver ? <p class="drop-note">{t.drop}</p> : null}
      <UploadList {...uploads} />
      <ListSearch
        path="/assets"
        params={paramsOf(query)}
        label={t.search}
        choices={[{ name: 'type', label: t.type, options: Object.entries(t.types) }]}
        check={{ name: 'unused', label: t.unused }}
      />
      <List key={JSON.stringify(query)} {...{ query, uploaded, canWrite }} />
    </div>
  );
}

/** The parameters of the URL for a query. */
function paramsOf({ text, type, unused }: Query) {
  return { text, type, ...(unused === true && { unused: 'yes' }) };
}

function List({
  query,
  uploaded,
  canWrite,
}: {
  query: Query;
  uploaded: number;
  canWrite: boolean;
}) {
  const live = useLive(['changes']);
  const [widths, setWidths] = useState<readonly number[]>([]);
  const pages = usePages<Asset, string>(
    async (after, limit) => {
      const page = { limit, ...(after !== undefined && { after }) };
      const found = await call<AssetPage>('asset.list', { ...query, ...page });
      setWidths(found.widths);
      return found;
    },
    live === 0 ? 0 : live + uploaded,
  );
  const [gone, setGone] = useState<Gone>();
  const { rows, reload } = pages;
  const isFiltered = Object.keys(query).length > 0;
  return (
    <>
      {gone === undefined ? null : <Restore key={gone.txn} gone={gone} onDone={reload} />}
      <ListFrame
        pages={pages}
        empty={isFiltered ? t.nothing : t.empty}
        emptyHint={isFiltered ? undefined : t.emptyHint}
        hasMore
      >
        <ul class="asset-cards">
          {rows.map((asset) => (
            <Card
              key={asset.id}
              {...{ asset, canWrite, hasSizes: widths.length > 0 }}
              onChange={reload}
              onGone={(one) => {
                setGone(one);
                reload();
              }}
            />
          ))}
        </ul>
      </ListFrame>
    </>
  );
}

/** An asset that was deleted, and the transaction. */
interface Gone {
  readonly name: string;
  readonly txn: string;
}

interface CardProps {
  readonly asset: Asset;
  readonly canWrite: boolean;
  readonly hasSizes: boolean;
  readonly onChange: () => void;
  readonly onGone: (gone: Gone) => void;
}

function Card({ asset, canWrite, hasSizes, onChange, onGone }: CardProps) {
  const { name, bytes, contenttype, uses } = asset;
  const [isDeleting, setDeleting] = useState(false);
  const { error, isRunning, run } = useAction(onChange);
  const shown = uses.find(isReachable);
  return (
    <li>
      <Thumbnail {...{ asset, hasSizes }} />
      <h2>{name}</h2>
      <p class="note">
        {bytesText(bytes)} · {contenttype}
      </p>
      <Uses asset={asset} />
      <Fault error={error} />
      {isDeleting ? (
        <Deletion
          name={name}
          onGone={onGone}
          onClose={() => {
            setDeleting(false);
          }}
        />
      ) : (
        <p class="actions">
          {shown === undefined ? null : <CopyAddress use={shown} />}
          {shown === undefined && canWrite ? (
            <button
              type="button"
              class="quiet-button"
              disabled={isRunning}
              onClick={() => {
                void run(async () => (await pageOf(asset, '*')).path);
              }}
            >
              {t.giveAddress}
            </button>
          ) : null}
          {canWrite ? (
            <button
              type="button"
              class="quiet-button danger"
              aria-label={`${t.remove} ${name}`}
              onClick={() => {
                setDeleting(true);
              }}
            >
              {t.remove}
            </button>
          ) : null}
        </p>
      )}
    </li>
  );
}

/** The page rules that show an asset. */
function Uses({ asset: { used, uses } }: { asset: Pick<Asset, 'used' | 'uses'> }) {
  if (used === 0) return <p class="note">{t.unusedNote}</p>;
  return (
    <p class="note">
      {t.usedBy}{' '}
      {uses.map((use, at) => (
        <span key={use.id}>
          {at === 0 ? '' : ', '}
          <a href={`#/pages/${use.id}`}>{placeOf(use)}</a>
        </span>
      ))}{' '}
      {used > uses.length ? t.more(used - uses.length) : ''}
    </p>
  );
}

function placeOf({ origin, path }: AssetUse): string {
  return origin === '*' ? path : origin + path;
}

function CopyAddress({ use }: { use: AssetUse }) {
  const [isCopied, setCopied] = useState(false);
  const url = addressOf({ origin: use.origin, path: use.path }) ?? '';
  return (
    <button
      type="button"
      class="quiet-button"
      title={url}
      onClick={() => {
        void navigator.clipboard.writeText(url).then(() => {
          setCopied(true);
        });
      }}
    >
      <span aria-live="polite">{isCopied ? t.copied : t.copy}</span>
    </button>
  );
}

interface Report {
  readonly used: number;
  readonly uses: readonly AssetUse[];
  readonly digest?: string;
  readonly txn?: string;
}

/** Asks before an asset is deleted, and names the pages that show it. */
function Deletion({
  name,
  onGone,
  onClose,
}: {
  name: string;
  onGone: (gone: Gone) => void;
  onClose: () => void;
}) {
  const [report, setReport] = useState<Report>();
  const { error, isRunning, run } = useAction(() => undefined);
  const begun = useRef(false);
  const look = (): Promise<void> =>
    run(async () => {
      setReport(await call<Report>('asset.invalidate', { name }));
      return '';
    });
  if (!begun.current) {
    begun.current = true;
    void look();
  }
  const remove = (): Promise<void> =>
    run(async () => {
      const confirm = report?.digest;
      const { txn = '' } = await call<Report>('asset.invalidate', { name, confirm });
      onGone({ name, txn });
      return '';
    });
  return (
    <div class="deletion" role="group" aria-label={`${t.remove} ${name}`}>
      <Fault error={error} onRetry={() => void look()} />
      {report === undefined ? null : (
        <>
          <p>{report.used === 0 ? t.removesUnused : t.removesUsed(report.used)}</p>
          {report.used === 0 ? null : (
            <ul>
              {report.uses.map((use) => (
                <li key={use.id}>
                  <a href={`#/pages/${use.id}`}>{placeOf(use)}</a>
                </li>
              ))}
            </ul>
          )}
        </>
      )}
      <p class="actions">
        <button
          type="button"
          class="quiet-button danger"
          disabled={isRunning || report === undefined}
          onClick={() => void remove()}
        >
          {t.removeNow}
        </button>
        <button type="button" class="quiet-button" onClick={onClose}>
          {t.keep}
        </button>
      </p>
    </div>
  );
}

/** Says that an asset is deleted, and brings it back. */
function Restore({ gone: { name, txn }, onDone }: { gone: Gone; onDone: () => void }) {
  const { error, said, isRunning, run } = useAction(onDone);
  const restore = (): Promise<void> =>
    run(async () => {
      const undo = { table: 'asset', txn };
      const { digest } = await call<Report>('record.invalidate', undo);
      await call('record.invalidate', { ...undo, confirm: digest });
      return t.restored(name);
    });
  return (
    <div class="fault soft" role="status">
      <p>{said === '' ? t.removed(name) : said}</p>
      <Fault error={error} />
      {said === '' ? (
        <button type="button" disabled={isRunning} onClick={() => void restore()}>
          {t.undo}
        </button>
      ) : null}
    </div>
  );
}
