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
  /** The state of a device that lost its own: from then on the prior is released. Never start again. */
  lost(step?: number): StreamState;
  toText(state: StreamState): string;
  fromText(text: string): StreamState;
  /** What is left, from 1 down to 0, where only the public law can be released; private, for the member's own eyes. */
  room(state: StreamState): number;
  release(records: readonly Category[], state: StreamState, options?: ReleaseOptions): Released;
  releaseCounts(map: ReadonlyMap<Category, number>, state: StreamState, options?: ReleaseOptions): Released;
  releaseShares(p: readonly number[] | Float64Array | Float32Array, state: StreamState): Released;
}

export function loadStream(bytes: Uint8Array | ArrayBuffer, policy: Policy): Promise<Stream>;
