import type { Step } from '../../core/pipeline/pipeline.ts';
import type { Serving } from '../../core/pipeline/serving.ts';
import { previewToken } from './draft.ts';
import { confined, isOfLivePage, previewReply } from './preview-answer.ts';

/** The step of a browser that previews a draft: the site answers as the draft has it. */
export function previewStep(previews: Serving['previews'], base: string): Step {
  return {
    at: 'preview',
    handle(request, next) {
      const { fields } = request.sent?.incoming ?? request;
      const token = previewToken(fields.cookie);
      // A browser keeps a worker when the preview has ended.
      if (token === undefined || fields['service-worker'] === 'script') return next(request);
      const preview = previews.find(token, request.visitor.nowMs);
      if (preview === undefined || isOfLivePage(preview, fields)) return next(request);
      const reply = previewReply(preview, request, `${base}/svc1/preview/end`);
      const { sent } = request;
      if (preview.isTrusted || sent === undefined) return reply;
      // A script of an error page could put parts of the draft into it.
      return reply.catch(async (thrown: unknown) =>
        confined(await sent.answers.failed(thrown, request)),
      );
    },
  };
}
