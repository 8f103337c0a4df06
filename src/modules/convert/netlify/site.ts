import type { IniSection } from '../conversion.ts';
import type { SitePlace } from '../sections.ts';

/** The site of a file: where its sections apply, and its folder. */
export interface NetlifySite extends SitePlace {
  readonly mount: IniSection | undefined;
  readonly root: string;
}
