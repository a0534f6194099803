// The types name exactly what there is; whether they are right `tsc` says, in `./run check`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as vigilog from "../../../vigilog/client/javascript/vigilog.js";

const declared = readFileSync(new URL("../../../vigilog/client/javascript/vigilog.d.ts", import.meta.url), "utf8");
const INTERNAL = { Subscription: ["constructor", "named", "paused", "receive", "request"], View: ["constructor"], Client: ["constructor"], VigilogError: ["constructor"] };

test("every export is declared, and nothing else", () => {
  const names = [...declared.matchAll(/^export (?:class|function) (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(names.sort(), Object.keys(vigilog).sort());
});

for (const [name, internal] of Object.entries(INTERNAL)) {
  test(`every method of ${name} is declared, and nothing else`, () => {
    const [, body] = declared.match(new RegExp(`^export class ${name}\\b[^{]*\\{\\n([\\s\\S]*?)^\\}`, "m"));
    const methods = [...body.matchAll(/^ {2}(\w+)(?:<[^>]*>)?\(/gm)].map(([, method]) => method);
    const own = Object.entries(Object.getOwnPropertyDescriptors(vigilog[name].prototype)).filter(([method, { value }]) => value && !internal.includes(method));
    assert.deepEqual(methods.filter((method) => method !== "constructor").sort(), own.map(([method]) => method).sort());
  });
}
