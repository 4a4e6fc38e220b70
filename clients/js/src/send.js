/**
 * Sends reports to a collector. A report is drawn and stored before it is sent (`budget.release` does both), every
 * attempt sends the same bytes, and a failed send draws nothing. Whether, when and how often something is sent depends on
 * the answers of the collector, the clock and chance, never on the content of a report.
 */
import { random } from "./mechanism.js";
import { Refused, need } from "./refuse.js";
import { isReport } from "./report.js";

export { Refused };

const FIRST = 500; // milliseconds: the longest first pause; it doubles with each attempt
const LONGEST = 30000;
const ATTEMPT = 30000; // an attempt without an answer ends after this
const SHOWN = 300; // characters of an answer that an error shows; no more of it is read
const DATE = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;

/** Reports that were not answered 202. `status` is 0 where no answer came; `final`: the same bytes will not be accepted later. */
export class SendError extends Error {
  constructor(status, final, attempts, text) {
    super(`the collector ${status ? "answered " + status : "did not answer"} (attempts: ${attempts})${text && ": " + text}`);
    this.name = "SendError";
    this.status = status;
    this.final = final;
    this.attempts = attempts;
  }
}

const CLOCK = {
  now: () => Date.now(),
  random: () => new DataView(random(4).buffer).getUint32(0) / 2 ** 32,
  expire: (milliseconds) => AbortSignal.timeout(Math.ceil(milliseconds)),
  wait: (milliseconds, signal) =>
    new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, milliseconds);
      signal?.addEventListener("abort", done);
    }),
};

const isTemporary = (status) => status === 408 || status === 425 || status === 429 || status >= 500;

/** Milliseconds that Retry-After asks for, given in seconds or as a date; 0 for anything else. */
function retryAfter(text, now) {
  if (/^\d{1,9}$/.test(text)) return 1000 * text;
  return DATE.test(text) ? Math.max(0, Date.parse(text) - now) : 0;
}

/** The first characters of an answer, or those that arrived; the rest is not read, as it could be of any length. */
async function beginning(body) {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (reader && text.length < SHOWN) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value.subarray(0, 4 * SHOWN), { stream: true });
    }
  } catch {
    // The connection broke: what arrived is shown.
  }
  reader?.cancel().catch(() => {});
  return text.slice(0, SHOWN);
}

/** One request; the status 0 stands for every failure without an answer. */
async function attempt(fetch, url, init, signals) {
  const stop = new AbortController();
  for (const signal of signals) signal?.addEventListener("abort", () => stop.abort(), { signal: stop.signal });
  try {
    const answer = await fetch(url, { ...init, signal: stop.signal });
    const { status, headers } = answer;
    const final = !isTemporary(status);
    const text = final && status !== 202 ? await beginning(answer.body) : "";
    return { status, final, text, after: headers.get("retry-after") };
  } catch {
    return { status: 0, final: false, text: "", after: null };
  } finally {
    stop.abort(); // frees the connection and removes the listeners
  }
}

/**
 * Send one report or a list, the same bytes again until they are answered 202. Answers 408, 425, 429 and 5xx and a failing
 * network are temporary: it waits for what Retry-After asks plus a random part of a doubling pause, and sends again. Every
 * other answer is final. Throws SendError after `attempts`, or where the next attempt would begin after `timeout`
 * milliseconds; the reason of `signal` if that aborts. Calling again with the same reports is always safe.
 */
export async function send(url, reports, { key, signal, attempts = 8, timeout = 120000, fetch = globalThis.fetch, clock = CLOCK } = {}) {
  const list = Array.isArray(reports) ? reports : [reports];
  need(list.length && list.every(isReport), "call", "send takes reports as budget.release and report() return them, nothing else");
  need(Number.isSafeInteger(attempts) && attempts > 0 && timeout > 0 && timeout < 2 ** 31, "call",
    "attempts is a positive integer, timeout a number of milliseconds below 2^31");
  need(URL.canParse(url, globalThis.location?.href), "call", "url must be the address of the collector, in full outside a page");
  const body = JSON.stringify({ reports: list });
  const headers = { "content-type": "application/json", ...(key !== undefined && { authorization: `Bearer ${key}` }) };
  const init = { method: "POST", headers, body, credentials: "omit", redirect: "manual", referrerPolicy: "no-referrer" };
  const end = clock.now() + timeout;
  for (let count = 1; ; count++) {
    signal?.throwIfAborted();
    const late = clock.expire(Math.min(ATTEMPT, end - clock.now()));
    const { status, final, text, after } = await attempt(fetch, url, init, [signal, late]);
    if (status === 202) return;
    signal?.throwIfAborted();
    const pause = retryAfter(after, clock.now()) + clock.random() * Math.min(LONGEST, FIRST * 2 ** (count - 1));
    if (final || count === attempts || clock.now() + pause >= end) throw new SendError(status, final, count, text);
    await clock.wait(pause, signal);
  }
}
