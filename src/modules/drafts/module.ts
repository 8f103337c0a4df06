import { defineModule } from '../../core/module.ts';
import { listDraftChanges } from './operations/changes.ts';
import {
  approveDraft,
  commentDraft,
  editDraft,
  insertDraft,
  invalidateDraft,
  listDrafts,
  readDraft,
  submitDraft,
  unscheduleDraft,
} from './operations/drafts.ts';
import { previewDraft, revokePreview } from './operations/previews.ts';
import { publishDraft } from './operations/publish.ts';
import { undoDraft } from './operations/undo.ts';
import { previewPath } from './preview-answer.ts';

/** Changes that are reviewed before they are live: `[review]`. */
export const drafts = defineModule({
  name: 'drafts',
  needs: ['cluster', 'rules', 'tables', 'webhooks'],
  operations: [
    insertDraft,
    editDraft,
    readDraft,
    listDrafts,
    invalidateDraft,
    commentDraft,
    submitDraft,
    approveDraft,
    previewDraft,
    revokePreview,
    listDraftChanges,
    publishDraft,
    undoDraft,
    unscheduleDraft,
  ],
  commands: [
    {
      name: 'draft',
      summary: 'make, compare and publish drafts',
      load: async () => (await import('./command.ts')).defineDraft,
    },
    {
      name: 'schedule',
      summary: 'show what happens at which time',
      load: async () => (await import('./schedule-command.ts')).defineSchedule,
    },
  ],
  provision: () => ({ paths: { preview: previewPath } }),
});
