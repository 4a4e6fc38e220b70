import type { BudgetOptions } from "./budget.js";
import type { Category, MechanismFacts, Policy, ReleaseOptions, Report } from "./index.js";
export { Refused } from "./index.js";

export interface RemoteMechanism extends MechanismFacts {
  /** With a budget, the first answer for this epoch, now and later; without one, a new release each time. */
  release(records: readonly Category[], epoch?: string, options?: ReleaseOptions): Promise<Report>;
  releaseCounts(counts: ReadonlyMap<Category, number>, epoch?: string, options?: ReleaseOptions): Promise<Report>;
}

export interface Remote {
  /**
   * `grid` is how many milliseconds lie between two moments at which the worker answers a release; 20 by default.
   * Every load is an entry of its own: no later load changes the grid or the budget of an earlier one.
   */
  load(bytes: Uint8Array | ArrayBuffer, policy: Policy, options?: { grid?: number; budget?: BudgetOptions }): Promise<RemoteMechanism>;
}

export function remote(worker: Worker): Remote;
