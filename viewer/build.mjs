// Bundles the page's program and three.js into one file of the Python package, with three's licence beside it.
import { createHash } from "node:crypto";
import { copyFileSync, readFileSync, readdirSync } from "node:fs";
import { build } from "esbuild";

const target = new URL("../src/contactdynamics/views/page/", import.meta.url).pathname;
// The sources that the file is made from, so that a test can see when it is older than they are.
const hash = createHash("sha256");
const sources = new URL("src/", import.meta.url).pathname;
for (const name of readdirSync(sources).sort()) hash.update(readFileSync(sources + name));
await build({
  entryPoints: [new URL("src/main.js", import.meta.url).pathname],
  outfile: target + "viewer.js",
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  legalComments: "inline",
  charset: "ascii",
  banner: { js: `/* made from viewer/src ${hash.digest("hex")}; three.js is under the MIT licence, see three.LICENSE */` },
});
copyFileSync(new URL("node_modules/three/LICENSE", import.meta.url).pathname, target + "three.LICENSE");
