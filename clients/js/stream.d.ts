/** Streams: any number of releases of a user for one ε. */
import type { Category, MechanismFacts, Policy, ReleaseOptions } from "./index.js";
export { Refused } from "./index.js";

/** What a device keeps between two releases: private, and used once. */
export interface StreamState {
  /** ε of the stream, as a fraction: a state of another one is refused. */
  readonly epsilon: string;
  readonly step: number;
  readonly low: bigint;
  readonly high: bigint;
  readonly last: number | null;
}

export interface Released {
  readonly category: Category;
  /** Keep this one, and forget the one before. */
  readonly state: StreamState;
}

export interface Stream extends Omit<MechanismFacts, "kind"> {
  readonly kind: "stream" | "nearest-stream";
  start(): StreamState;
  /**
   * The state of a device that lost R after so many releases: from then on the public law of each step is released.
   * With persistence that lies around `last`, this device's last release, named as in the file that released it and
   * taken from the device's own record, never from a collector. null: nothing was released, or that is lost too; then
   * the prior is released, and with persistence ε holds only for losses that do not depend on the data.
   * Never start again.
   */
  lost(step: number, last: Category | null): StreamState;
  /** The state as one record: store it as a whole. Its checksum, which is required, shows damage, and a record put together from two. */
  toText(state: StreamState): string;
  fromText(text: string): StreamState;
  /** What is left, from 1 down to 0, where only the public law can be released; private, for the member's own eyes. */
  room(state: StreamState): number;
  release(records: readonly Category[], state: StreamState, options?: ReleaseOptions): Released;
  releaseCounts(map: ReadonlyMap<Category, number>, state: StreamState, options?: ReleaseOptions): Released;
  releaseShares(p: readonly number[] | Float64Array | Float32Array, state: StreamState): Released;
}

export function loadStream(bytes: Uint8Array | ArrayBuffer, policy: Policy): Promise<Stream>;
