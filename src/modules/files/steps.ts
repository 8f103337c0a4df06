import { isRead } from '../../core/http/request.ts';
import {
  type CandidateExplanation,
  type LossCode,
  type MountLoss,
  explainCandidatesMax,
} from '../../core/pipeline/explanation.ts';
import type { Step } from '../../core/pipeline/pipeline.ts';
import { sourceStep, withSlashRedirect } from '../../core/pipeline/source-step.ts';
import {
  type ContentSource,
  type ExpectedReply,
  type ExplainedReply,
  type PageRequest,
  type SourceExplanation,
  explainReadOnly,
  readOnlyReply,
  replyOrFailure,
} from '../../core/pipeline/source.ts';
import type { Disk } from './disk.ts';
import type { Mount, MountExplanation } from './mount.ts';

/**
 * The files of the mounts: the first source. It answers for every method, so that a POST cannot
 * reach another page than the GET of the same URL.
 */
export function diskStep(disk: Disk): Step {
  const source: ContentSource = {
    name: 'disk',
    mayMiss: true,
    respond(request) {
      if (isRead(request.method)) return disk.respond(request);
      return hasFile(disk, request) ? readOnlyReply(request.method) : undefined;
    },
    explain: (request) =>
      explainMounts(disk.mounts, (mount) => {
        const explained = mount.explain(request);
        if ('loss' in explained) return explained;
        return isRead(request.method) ? explained : explainReadOnly(request.method);
      }),
  };
  const slashed = withSlashRedirect(source, (single) => source.explain(single).reply !== undefined);
  return sourceStep('disk', slashed);
}

/** Whether a mount answers a path with a file or a folder. */
export function hasFile({ mounts }: Disk, request: PageRequest): boolean {
  return mounts.some((mount) => 'status' in mount.explain(request));
}

/** The fallback files of the mounts: the last source, for GET and HEAD only. */
export function fallbackStep(disk: Disk): Step {
  const mounts = disk.mounts.filter(({ hasFallback }) => hasFallback);
  return sourceStep('fallback', {
    name: 'fallback',
    mayMiss: true,
    respond: (request) => (mounts.length === 0 ? undefined : disk.fallback(request)),
    explain: (request) =>
      explainMounts(mounts, (mount) =>
        isRead(request.method) ? mount.explainFallback(request) : { loss: 'method' },
      ),
  });
}

const losses: Readonly<Record<MountLoss, (mount: Mount) => string>> = {
  method: () => 'A fallback file answers GET and HEAD only.',
  other_origin: ({ origin }) => `It serves ${origin} only.`,
  other_path: ({ path }) => `It serves paths below ${path} only.`,
  hidden_name: () => 'The path contains a hidden name, or one that no file can have.',
  no_file: () => 'No such file.',
  not_a_file: () => 'It is neither a file nor a folder.',
  not_a_folder: () => 'It is a file, but the path ends with / like that of a folder.',
  no_index: () => 'The folder has no index file, and the mount does not list folders.',
};

/** Explains mounts in their order until one answers. */
function explainMounts(
  mounts: readonly Mount[],
  explain: (mount: Mount) => MountExplanation | ExpectedReply,
): SourceExplanation {
  const candidates: CandidateExplanation[] = [];
  let answer: ExplainedReply | undefined;
  for (const mount of mounts) {
    const { name, origin, path } = mount;
    const lose = (code: LossCode, says: string) => {
      candidates.push({ mount: name, origin, path, lost: { code, says } });
    };
    if (answer !== undefined) {
      lose('earlier_mount', `The mount ${answer.mount ?? ''} comes first and answers.`);
      continue;
    }
    const explained = replyOrFailure(() => explain(mount));
    if ('loss' in explained) {
      lose(explained.loss, losses[explained.loss](mount));
    } else {
      answer = { mount: name, ...explained };
      candidates.push({ mount: name, origin, path });
    }
  }
  return { ...bounded(candidates), reply: answer };
}

/** The first mounts up to the limit, and always the one that answers. */
function bounded(
  candidates: readonly CandidateExplanation[],
): Pick<SourceExplanation, 'candidates' | 'omitted'> {
  const omitted = candidates.length - explainCandidatesMax;
  if (omitted <= 0) return { candidates };
  const answering = candidates.findIndex(({ lost }) => lost === undefined);
  const last = Math.max(answering, explainCandidatesMax - 1);
  const first = candidates.slice(0, explainCandidatesMax - 1);
  return { candidates: [...first, ...candidates.slice(last, last + 1)], omitted };
}
