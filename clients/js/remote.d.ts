import type { BudgetOptions } from "./budget.js";
import type { Category, MechanismFacts, Policy, Report } from "./index.js";
export { Refused } from "./index.js";

export interface RemoteMechanism extends MechanismFacts {
  /** With a budget, the first answer for this epoch, now and later; without one, a new release each time. */
  release(records: readonly Category[], epoch?: string): Promise<Report>;
  releaseCounts(counts: ReadonlyMap<Category, number>, epoch?: string): Promise<Report>;
}

export interface Remote {
  /** `grid` is how many milliseconds lie between two moments at which the worker answers. */
  load(bytes: Uint8Array | ArrayBuffer, policy: Policy, options?: { grid?: number; budget?: BudgetOptions }): Promise<RemoteMechanism>;
}

export function remote(worker: Worker): Remote;
