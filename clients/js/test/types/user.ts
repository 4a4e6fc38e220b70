/** A program that uses every type of the package; test/package.test.js compiles it, and nothing runs it. */
import { type Mechanism, type Policy, Refused, type Report, load, report } from "sottovoce";
import { type Budget, openBudget } from "sottovoce/budget";
import { loadGroups } from "sottovoce/groups";
import { remote } from "sottovoce/remote";
import { SendError, send } from "sottovoce/send";
import { loadStream } from "sottovoce/stream";
import "sottovoce/worker";

const policy: Policy = { maxEpsilon: "3/10", maxCategories: 100, digest: "0".repeat(64) };

export async function tell(bytes: Uint8Array, records: string[], signal: AbortSignal): Promise<number> {
  const mechanism: Mechanism = await load(bytes, policy);
  const budget: Budget = await openBudget({ limit: 6, path: "budget.json" });
  const made: Report = await budget.release(mechanism, "2026-11", records, { unknown: "error" });
  try {
    await send("https://example.org/v1/reports", [made, report(mechanism, mechanism.releaseCounts(new Map([["a", 1]])))], { signal, attempts: 3, key: "k" });
    await send("https://example.org/v1/reports", made, { fetch: (url, init) => fetch(url, { ...init, keepalive: true }) });
  } catch (problem) {
    if (problem instanceof SendError) return problem.final ? problem.status : problem.attempts;
    if (problem instanceof Refused && problem.reason === "call") return 0;
  }
  const group = (await loadGroups(bytes.buffer as ArrayBuffer, policy)).get("young");
  const stream = await loadStream(bytes, { ...policy, provenance: "public" });
  const { state } = stream.release(records, stream.start());
  stream.lost(state.step, records[0] ?? null);
  const far = remote(new Worker(new URL("https://example.org/worker.js"), { type: "module" }));
  const other = await far.load(bytes, policy, { grid: 20, budget: { limit: 6 } });
  await send("/v1/reports", [await budget.visit(stream, "1", records), await other.release(records, "1")]);
  return group.epsilon.length + state.step + (await budget.left());
}

export function mistakes(mechanism: Mechanism): void {
  // @ts-expect-error a text is not bytes
  void load("{}", policy);
  // @ts-expect-error a policy names a digest
  void load(new Uint8Array(), { maxEpsilon: 1, maxCategories: 1 });
  // @ts-expect-error a category is not a report
  void send("/v1/reports", mechanism.release(["a"]));
  // @ts-expect-error a mechanism cannot be changed
  mechanism.epsilon = "1/1";
}
