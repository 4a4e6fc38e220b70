import type { Mechanism, Policy } from "./index.js";

export interface Groups {
  readonly digest: string;
  /** The attribute that says to which group a user belongs; null unless the policy names this very file by its digest. */
  readonly by: string | null;
  readonly names: readonly string[];
  /** The mechanism of a group. The group of a user is published in clear. */
  get(name: string): Mechanism;
}

export function loadGroups(bytes: Uint8Array | ArrayBuffer, policy: Policy): Promise<Groups>;
