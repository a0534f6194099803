// The types name exactly what there is; whether they are right `tsc` says, in `./run check`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as objects from "../../../vigilog/client/javascript/objects.js";
import * as vigilog from "../../../vigilog/client/javascript/vigilog.js";

const declaration = (name) => readFileSync(new URL(`../../../vigilog/client/javascript/${name}.d.ts`, import.meta.url), "utf8");
const MODULES = { vigilog: [vigilog, declaration("vigilog")], objects: [objects, declaration("objects")] };
const INTERNAL = {
  vigilog: { Subscription: ["constructor", "named", "paused", "receive", "request"], View: ["constructor"], Client: ["constructor", "exact"], VigilogError: ["constructor"] },
  objects: { DatabaseObject: ["constructor"], ViewAdmin: ["constructor"] },
};

for (const [module, [found, declared]] of Object.entries(MODULES)) {
  test(`every export of ${module} is declared, and nothing else`, () => {
    const names = [...declared.matchAll(/^export (?:class|function) (\w+)/gm)].map(([, name]) => name);
    assert.deepEqual(names.sort(), Object.keys(found).sort());
  });
}

const classes = Object.entries(INTERNAL).flatMap(([module, known]) => Object.entries(known).map(([name, internal]) => [name, internal, ...MODULES[module]]));
for (const [name, internal, found, declared] of classes) {
  test(`every method of ${name} is declared, and nothing else`, () => {
    const [, body] = declared.match(new RegExp(`^export class ${name}\\b[^\\n]*\\{\\n([\\s\\S]*?)^\\}`, "m"));
    const methods = [...body.matchAll(/^ {2}(\w+)(?:<[^>]*>)?\(/gm)].map(([, method]) => method);
    const own = Object.entries(Object.getOwnPropertyDescriptors(found[name].prototype)).filter(([method, { value }]) => value && !internal.includes(method));
    assert.deepEqual([...new Set(methods)].filter((method) => method !== "constructor").sort(), own.map(([method]) => method).sort());
  });
}
