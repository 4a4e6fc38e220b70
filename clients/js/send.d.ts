/** Sends reports to a collector: the same bytes again until they are answered 202. */
import type { Report } from "./index.js";
export { Refused } from "./index.js";

/** Reports that were not answered 202. Calling `send` again with the same reports is always safe. */
export class SendError extends Error {
  constructor(status: number, final: boolean, attempts: number, text: string);
  /** The last answer's status; 0 where no answer came. */
  readonly status: number;
  /** The same bytes will not be accepted later: repair the client, or fetch the mechanism again. */
  readonly final: boolean;
  /** How many requests were made. */
  readonly attempts: number;
}

export interface SendOptions {
  /** A key of the collector (its --key-file). In a page it is no secret. */
  key?: string;
  /** Ends the attempts; `send` then throws its reason. What was sent before may have arrived. */
  signal?: AbortSignal;
  /** The most requests; 8 by default. */
  attempts?: number;
  /** Milliseconds for all attempts together; 120,000 by default. */
  timeout?: number;
  /** Another fetch, for example one that adds a header. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** For tests: the time, a number from 0 to below 1, a signal that aborts after a time, and a pause. */
  clock?: {
    now(): number;
    random(): number;
    expire(milliseconds: number): AbortSignal;
    wait(milliseconds: number, signal?: AbortSignal): Promise<void>;
  };
}

/**
 * Send one report or a list. 408, 425, 429, 5xx and a failing network are tried again, after Retry-After and a random,
 * doubling pause; every other answer than 202 is final. Draw and store the report first, and call this for every user.
 */
export function send(url: string, reports: Report | readonly Report[], options?: SendOptions): Promise<void>;
