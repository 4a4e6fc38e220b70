/** Locally private sampling on the device. The format is docs/format.md of the project. */

export type Category = string | number;

export type Reason =
  | "text" | "format" | "fields" | "value" | "digest" | "ratio" | "certificate" | "keeps_prior" | "policy" | "user" | "budget" | "call";

/** Thrown for everything that is refused; `message` never holds a user's data. */
export class Refused extends Error {
  constructor(reason: Reason, message: string);
  readonly reason: Reason;
}

export interface PolicyLimits {
  /** The largest ε: a double, taken exactly, or a fraction in lowest terms as text, "3/10". */
  maxEpsilon: number | string;
  /** The most categories; of a file of groups, in all groups together. */
  maxCategories: number;
  /** Refuse a file that says its prior was made from the users it serves. */
  provenance?: "public" | "users";
  /** The largest ε of the private reports that a prior may have been learned from; one that states none is refused, and one made from users. */
  maxLearnedEpsilon?: number | string;
  /** The names that the file must have, exactly these, in any order; of a file of groups, in each group. */
  categories?: readonly Category[];
}

/**
 * A digest is 64 digits 0 to 9, a to f. `digest: "any"` accepts every file: each release is still ε-private, but whoever
 * replaces the file chooses the categories and the prior.
 */
export type Policy = PolicyLimits & ({ digest: string; digests?: never } | { digests: readonly string[]; digest?: never });

export interface MechanismFacts {
  readonly digest: string;
  /** ε as a fraction, "1/2". */
  readonly epsilon: string;
  readonly kind: "box" | "nearest" | "kernel" | "response" | "survey";
  readonly sampler: string;
  readonly categories: readonly Category[];
  readonly keepsPrior: boolean;
  readonly provenance: "public" | "learned" | "users";
  /** How many random bytes one release reads, whatever the data are. */
  readonly bytes: number;
  /** Only of a survey: how many different reports there are. A release is a number below that, not a category. */
  readonly reports?: number;
  /** The name of the group, and only for a mechanism of a file of groups. */
  readonly group?: string;
}

export interface ReleaseOptions {
  /**
   * "prior", the default: names that are not among the categories count for nothing, and a user for whom no record is left
   * is released as the public. "error": both are refused, and the refusal tells this about the user.
   */
  unknown?: "prior" | "error";
}

export interface Mechanism extends MechanismFacts {
  /** One category, ε-private; every further release costs ε again (see sottovoce/budget). */
  release(records: readonly Category[], options?: ReleaseOptions): Category;
  releaseCounts(map: ReadonlyMap<Category, number>, options?: ReleaseOptions): Category;
  /** From a distribution over the categories, in their order; all zeros are a user without records. */
  releaseShares(p: readonly number[] | Float64Array | Float32Array): Category;
}

/** What is sent to a collector; send the same one again until it is answered. */
export interface Report {
  readonly mechanism: string;
  readonly id: string;
  readonly category: Category;
  /** Only with a mechanism of a file of groups. */
  readonly group?: string;
}

export function load(bytes: Uint8Array | ArrayBuffer, policy: Policy): Promise<Mechanism>;
export function report(mechanism: MechanismFacts, category: Category): Report;
