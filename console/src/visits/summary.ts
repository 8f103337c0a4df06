/** A name with its visits. */
export interface Named {
  readonly name: string;
  readonly visits: number;
}

/** The answers of the access log, which a key without bounds gets. */
export interface RequestSums {
  readonly answers: number;
  readonly statuses: Readonly<Record<string, number>>;
  readonly sources: readonly {
    readonly source: string;
    readonly answers: number;
    readonly failed: number;
    readonly slow: number;
  }[];
  readonly refused: readonly {
    readonly source: string;
    readonly status: number;
    readonly reason: string;
    readonly answers: number;
  }[];
}

/** The answer of visit.summary. */
export interface VisitSummary {
  readonly retention_days: number;
  readonly visits: number;
  readonly robots: number;
  readonly days: readonly {
    readonly day: string;
    readonly visits: number;
    readonly robots: number;
  }[];
  readonly pages: readonly {
    readonly origin: string;
    readonly path: string;
    readonly visits: number;
  }[];
  readonly sources: readonly Named[];
  readonly countries: readonly Named[];
  readonly languages: readonly Named[];
  readonly devices: readonly Named[];
  readonly hosts: readonly Named[];
  readonly origins?: readonly Named[];
  readonly requests?: RequestSums;
}
