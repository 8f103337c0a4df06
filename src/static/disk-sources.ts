import { isRead } from '../http/request.ts';
import type { LossCode, MountLoss, TriedCandidate } from '../model/explanation.ts';
import { explainCandidatesMax } from '../model/limits.ts';
import { encodePath } from '../model/path.ts';
import type { Disk } from './disk.ts';
import type { MountLook } from './explain.ts';
import type { Mount } from './mount.ts';
import {
  answerUnread,
  lookUnread,
  outcomeOf,
  type Asked,
  type Look,
  type LookedAnswer,
  type Outcome,
  type Source,
} from '../rules/source.ts';

/** The files of the mounts: the first source, which hides all others from every method. */
export function diskSource(disk: Disk): Source {
  return {
    name: 'disk',
    respond(request) {
      if (isRead(request.method)) return disk.respond(request);
      const isThere = disk.mounts.some((mount) => 'status' in mount.look(request));
      return isThere ? answerUnread(request.method) : undefined;
    },
    look: (asked) =>
      lookInto(disk.mounts, (mount) => {
        const looked = mount.look(asked);
        if ('loss' in looked) return looked;
        if (!isRead(asked.method)) return lookUnread(asked.method);
        return looked.status === 301 ? { ...looked, notes: [movedTo(asked)] } : looked;
      }),
  };
}

/** The fallback files of the mounts, for reading what no other source has. */
export function fallbackSource(disk: Disk): Source {
  const mounts = disk.mounts.filter(({ hasFallback }) => hasFallback);
  return {
    name: 'fallback',
    respond: (request) => disk.fallback(request),
    look: (asked) =>
      lookInto(mounts, (mount) =>
        isRead(asked.method) ? mount.lookFallback(asked) : { loss: 'method' },
      ),
  };
}

const losses: Readonly<Record<MountLoss, (mount: Mount) => string>> = {
  method: () => 'A fallback file answers GET and HEAD only.',
  other_origin: ({ origin }) => `It is for ${origin} only.`,
  other_path: ({ path }) => `It is for what is below ${path} only.`,
  hidden_name: () => 'The path has a name in it that is hidden, or that no file can have.',
  no_file: () => 'No such file.',
  not_a_file: () => 'What it has there is neither a file nor a folder.',
  not_a_folder: () => 'It has a file there, and the path ends in / as that of a folder.',
  no_index: () => 'It has a folder there without an index file, and does not list folders.',
};

/** Asks mounts in their order until one has an answer. */
function lookInto(mounts: readonly Mount[], look: (mount: Mount) => MountLook | Outcome): Look {
  const candidates: TriedCandidate[] = [];
  let answer: LookedAnswer | undefined;
  for (const mount of mounts) {
    const { name, origin, path } = mount;
    const lose = (code: LossCode, says: string) => {
      candidates.push({ mount: name, origin, path, lost: { code, says } });
    };
    if (answer !== undefined) {
      lose('earlier_mount', `The mount ${answer.mount ?? ''} is asked before it.`);
      continue;
    }
    const looked = outcomeOf(() => look(mount));
    if ('loss' in looked) {
      lose(looked.loss, losses[looked.loss](mount));
    } else {
      answer = { mount: name, ...looked };
      candidates.push({ mount: name, origin, path });
    }
  }
  return { ...bounded(candidates), answer };
}

/** The first mounts, and the one that answers wherever it stands. */
function bounded(candidates: readonly TriedCandidate[]): Pick<Look, 'candidates' | 'omitted'> {
  const omitted = candidates.length - explainCandidatesMax;
  if (omitted <= 0) return { candidates };
  const answering = candidates.findIndex(({ lost }) => lost === undefined);
  const last = Math.max(answering, explainCandidatesMax - 1);
  const first = candidates.slice(0, explainCandidatesMax - 1);
  return { candidates: [...first, ...candidates.slice(last, last + 1)], omitted };
}

function movedTo({ path }: Asked): string {
  return `It is a folder: browsers are sent on to ${encodePath(path)}/.`;
}
