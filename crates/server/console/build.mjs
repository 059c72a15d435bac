// Builds the console: `node build.mjs FOLDER` writes there what the binary holds. The same sources give the same bytes.
import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const folder = resolve(process.argv[2] ?? "dist");

/** What is copied as it is, and the name it has in the binary. */
const COPIED = {
  "node_modules/@fontsource-variable/inter/files/inter-latin-wght-normal.woff2": "sans.woff2",
  "node_modules/@fontsource-variable/inter/LICENSE": "sans.LICENSE",
  "node_modules/@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2": "mono.woff2",
  "node_modules/@fontsource-variable/jetbrains-mono/LICENSE": "mono.LICENSE",
  "node_modules/preact/LICENSE": "preact.LICENSE",
  "node_modules/uplot/LICENSE": "uplot.LICENSE",
  "src/icon.svg": "icon.svg",
};

await mkdir(folder, { recursive: true });
for (const [from, to] of Object.entries(COPIED)) {
  await copyFile(join(here, from), join(folder, to));
}
await build({
  absWorkingDir: here,
  entryPoints: { console: "src/main.tsx" },
  outdir: folder,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "inline",
  external: ["*.woff2"],
  logLevel: "warning",
});

// The page names each part with its content's hash, so that a browser keeps it until it is another.
const page = await readFile(join(here, "src/index.html"), "utf8");
const names = [...page.matchAll(/\/console\/([a-z.0-9]+)"/g)].map((found) => found[1]);
let dated = page;
for (const name of names) {
  const hash = createHash("sha256")
    .update(await readFile(join(folder, name)))
    .digest("hex");
  dated = dated.replace(`/console/${name}"`, `/console/${name}?v=${hash.slice(0, 16)}"`);
}
await writeFile(join(folder, "index.html"), dated);
