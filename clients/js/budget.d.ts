import type { Category, Mechanism, ReleaseOptions, Report } from "./index.js";
import type { Stream } from "./stream.js";
export { Refused } from "./index.js";

export interface BudgetOptions {
  /** ε in all, added up in millionths; stays what it was when the budget was begun. */
  limit: number | string;
  /** false: refuse if nothing is stored, instead of beginning anew. */
  begin?: boolean;
  /** Browsers: the name of the database. */
  name?: string;
  /** Node: the file. */
  path?: string;
}

export interface Budget {
  /** Nothing was stored: this is the first time, or the storage was lost. */
  readonly fresh: boolean;
  /** Whether the browser promised to keep it. */
  readonly persisted: boolean;
  /** The same in plain words. */
  readonly notice: string;
  /** The first answer for this mechanism, group and epoch, now and later; ready to be sent. */
  release(mechanism: Mechanism, epoch: string, records: readonly Category[], options?: ReleaseOptions): Promise<Report>;
  releaseCounts(mechanism: Mechanism, epoch: string, map: ReadonlyMap<Category, number>, options?: ReleaseOptions): Promise<Report>;
  /** One release of a stream for this epoch, ready to be sent. Its ε is charged once, at the first visit; the state is kept here. */
  visit(stream: Stream, epoch: string, records: readonly Category[], options?: ReleaseOptions): Promise<Report>;
  /** What is left of a stream, from 1 down to 0, where only the public law is released; for the member's own eyes. */
  room(stream: Stream): Promise<number>;
  /** ε that is left. */
  left(): Promise<number>;
}

export function openBudget(options: BudgetOptions): Promise<Budget>;
