import { useRef, useState } from 'preact/hooks';
import { texts } from '../texts.ts';
import { assetName, findAsset, freeName, uploadFile } from './asset-files.ts';

const t = texts.assets;

/** A file on its way, or one that waits for a decision. */
export interface Upload {
  readonly key: number;
  readonly name: string;
  readonly file: File;
  readonly state: 'waits' | 'exists' | 'sending' | 'done' | 'failed';
  /** From 0 to 1. */
  readonly share: number;
  readonly message?: string;
}

/** Uploads files one after the other; `onDone` is called after each. */
export function useUploads(onDone: () => void) {
  const [uploads, setUploads] = useState<readonly Upload[]>([]);
  const newest = useRef(0);
  const last = useRef<Promise<void>>(Promise.resolve());
  const change = (key: number, fields: Partial<Upload>): void => {
    setUploads((all) => all.map((one) => (one.key === key ? { ...one, ...fields } : one)));
  };
  const send = async ({ key, file }: Upload, name: string): Promise<void> => {
    change(key, { state: 'sending', name });
    await uploadFile(name, file, (share) => {
      change(key, { share });
    });
    change(key, { state: 'done', share: 1 });
    onDone();
  };
  const queue = (upload: Upload, task: () => Promise<void>): void => {
    last.current = last.current.then(task).catch((error: unknown) => {
      const message = error instanceof Error ? error.message : texts.states.failed;
      change(upload.key, { state: 'failed', message });
    });
  };
  const add = (files: readonly File[]): void => {
    for (const file of files) {
      newest.current += 1;
      const upload: Upload = {
        ...{ key: newest.current, name: assetName(file), file, state: 'waits', share: 0 },
      };
      setUploads((all) => [...all, upload]);
      queue(upload, async () => {
        const found = await findAsset(upload.name);
        if (found === undefined) await send(upload, upload.name);
        else change(upload.key, { state: 'exists' });
      });
    }
  };
  const decide = (upload: Upload, isReplaced: boolean): void => {
    change(upload.key, { state: 'waits' });
    queue(upload, async () => {
      await send(upload, isReplaced ? upload.name : await freeName(upload.name));
    });
  };
  const clear = (): void => {
    setUploads([]);
  };
  return { uploads, add, decide, clear };
}

/** The uploads with their progress. */
export function UploadList({
  uploads,
  decide,
  clear,
}: Pick<ReturnType<typeof useUploads>, 'uploads' | 'decide' | 'clear'>) {
  if (uploads.length === 0) return null;
  const isBusy = uploads.some(({ state }) => state === 'waits' || state === 'sending');
  return (
    <section class="panel uploads" aria-label={t.uploads}>
      <ul>
        {uploads.map((upload) => (
          <li key={upload.key}>
            <span class="upload-name">{upload.name}</span>
            <UploadState upload={upload} decide={decide} />
          </li>
        ))}
      </ul>
      {isBusy ? null : (
        <button type="button" class="quiet-button" onClick={clear}>
          {t.clear}
        </button>
      )}
    </section>
  );
}

function UploadState({
  upload,
  decide,
}: {
  upload: Upload;
  decide: (upload: Upload, isReplaced: boolean) => void;
}) {
  const { state, share, name, message } = upload;
  switch (state) {
    case 'exists':
      return (
        <span class="upload-state" role="alert">
          {t.exists}{' '}
          {([true, false] as const).map((isReplaced) => (
            <button
              key={String(isReplaced)}
              type="button"
              class="quiet-button"
              onClick={() => {
                decide(upload, isReplaced);
              }}
            >
              {isReplaced ? t.replace : t.keepBoth}
            </button>
          ))}
        </span>
      );
    case 'failed':
      return (
        <span class="upload-state problem" role="alert">
          {message}
        </span>
      );
    case 'sending':
      return (
        <span class="upload-state">
          <progress value={share} max={1} aria-label={name} /> {t.sent(Math.floor(share * 100))}
        </span>
      );
    case 'waits':
    case 'done':
      return (
        <span class="upload-state note" role="status">
          {state === 'done' ? t.done : t.waits}
        </span>
      );
  }
}
