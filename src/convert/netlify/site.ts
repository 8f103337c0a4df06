import type { IniSection } from '../conversion.ts';
import type { Place } from '../sections.ts';

/** The site of a file: where its sections apply, and its folder. */
export interface NetlifySite extends Place {
  readonly mount: IniSection | undefined;
  readonly root: string;
}
