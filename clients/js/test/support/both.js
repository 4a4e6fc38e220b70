/** What a page that loads, releases and sends imports from the core: test/package.test.js measures it. */
export { load, report } from "../../src/core.js";
export { send } from "../../src/send.js";
