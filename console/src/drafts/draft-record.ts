import type { Json } from '../api/api.ts';
import { texts } from '../texts.ts';

/** Who did something to a draft, and when. */
export interface Note {
  readonly at: string;
  readonly by: string;
  readonly by_name?: string;
}

/** A draft as draft.read returns it. */
export interface Draft {
  readonly id: string;
  readonly name: string;
  readonly comment?: string;
  readonly state: keyof typeof texts.drafts.states;
  readonly created: string;
  readonly by: string;
  readonly by_name?: string;
  readonly closed?: string;
  readonly txn?: string;
  readonly comments?: readonly (Note & { readonly text: string })[];
  readonly submitted?: Note;
  readonly approvals?: readonly (Note & { readonly seq: number })[];
  readonly previews?: readonly { readonly id: string; readonly expires: string }[];
  readonly schedule?: {
    readonly at: string;
    readonly time_zone?: string;
    readonly failed?: { readonly at: string; readonly reason: string };
  };
  readonly seq: number;
}

/** A record that a draft changes, with the versions of each field that differs. */
export interface DraftedChange {
  readonly family: 'userinterface' | 'webhook' | 'table' | 'record';
  readonly id: string;
  readonly label?: string;
  readonly becomes: keyof typeof texts.drafts.becomes;
  readonly fields: Readonly<Record<string, FieldVersions>>;
  readonly conflict?: boolean;
  readonly problem?: string;
}

/** A field live, in the draft, and, of a conflict, live when the draft first changed the record. */
interface FieldVersions {
  readonly base?: Json;
  readonly live: Json;
  readonly draft: Json;
}
