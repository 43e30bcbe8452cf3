// Bundles the page's program and three.js into one file of the Python package, with three's licence beside it.
import { copyFileSync } from "node:fs";
import { build } from "esbuild";

const target = new URL("../src/contactdynamics/views/page/", import.meta.url).pathname;
await build({
  entryPoints: [new URL("src/main.js", import.meta.url).pathname],
  outfile: target + "viewer.js",
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  legalComments: "inline",
  charset: "ascii",
});
copyFileSync(new URL("node_modules/three/LICENSE", import.meta.url).pathname, target + "three.LICENSE");
