/** The form of a report, for those who store or send one; `report` of core.js makes it. */
import { isDigest } from "./certificate.js";

const KEYS = ["mechanism", "id", "category", "group"];

export const isReport = (one) =>
  Object(one) === one && isDigest(one.mechanism) && /^[0-9a-f]{32}$/.test(one.id) &&
  ["string", "number"].includes(typeof one.category) && Object.keys(one).every((key) => KEYS.includes(key));

/** Whether a mechanism can release this. */
export const isAnswer = ({ categories, reports }, category) =>
  reports ? Number.isSafeInteger(category) && category >= 0 && category < reports : categories.includes(category);
