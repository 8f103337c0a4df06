import type { NodeStatus } from '../components/node-links.tsx';

/** The answer of server.status. */
export interface Status {
  readonly version: string;
  readonly started: string;
  readonly seq: number;
  readonly configuration: {
    readonly state: string;
    readonly restart_needed: readonly string[];
    readonly problems: readonly {
      readonly file: string;
      readonly line: number;
      readonly message: string;
    }[];
  };
  readonly certificates: readonly {
    readonly section: string;
    readonly names: readonly string[];
    readonly valid_from: string | null;
    readonly valid_until: string | null;
    readonly problem: string | null;
  }[];
  readonly keys: { readonly ending: number };
  readonly counts: { readonly rules: number; readonly hooks: number; readonly bytes: number };
  readonly memory: { readonly resident_bytes: number };
  readonly node: NodeStatus;
}
