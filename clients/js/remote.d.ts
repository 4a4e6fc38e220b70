import type { Category, MechanismFacts, Policy, Report } from "./index.js";
export { Refused } from "./index.js";

export interface RemoteMechanism extends MechanismFacts {
  release(records: readonly Category[]): Promise<Report>;
  releaseCounts(counts: ReadonlyMap<Category, number>): Promise<Report>;
}

export interface Remote {
  /** `grid` is how many milliseconds lie between two moments at which the worker answers. */
  load(bytes: Uint8Array | ArrayBuffer, policy: Policy, options?: { grid?: number }): Promise<RemoteMechanism>;
}

export function remote(worker: Worker): Remote;
