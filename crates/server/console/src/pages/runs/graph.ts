// A run's picture: read from Mermaid's language, as the server writes it, and laid out in layers.

export interface Node {
  id: string;
  lines: string[];
  state: string;
  x: number;
  y: number;
}

export interface Edge {
  from: Node;
  to: Node;
  label: string;
}

export interface Graph {
  nodes: Node[];
  edges: Edge[];
  width: number;
  height: number;
}

export const NODE = { width: 176, height: 58 };
const GAP = { x: 56, y: 18 };

const NODE_LINE = /^\s*(\w+)(?:\["(.*)"\]|\(\((.*)\)\))(?::::(\w+))?$/;
const EDGE_LINE = /^\s*(\w+) -->(?:\|(.*)\|)? (\w+)(?:\(\((.*)\)\))?$/;

/** Nodes and edges of a flowchart, left to right, each node behind all it depends on. */
export function graphOf(picture: string): Graph {
  const nodes = new Map<string, Node>();
  const pairs: { from: string; to: string; label: string }[] = [];
  const add = (id: string, text: string, state: string) =>
    nodes.set(id, { id, lines: text.split("<br/>").map(plain), state, x: 0, y: 0 });
  for (const line of picture.split("\n").slice(1)) {
    const edge = EDGE_LINE.exec(line);
    const node = edge ? null : NODE_LINE.exec(line);
    if (node) add(node[1]!, node[2] ?? node[3] ?? "", node[4] ?? "");
    if (!edge) continue;
    if (edge[4] !== undefined) add(edge[3]!, edge[4], edge[4] === "done" ? "done" : "failed");
    pairs.push({ from: edge[1]!, to: edge[3]!, label: plain(edge[2] ?? "") });
  }
  const edges = pairs.flatMap(({ from, to, label }) => {
    const [first, last] = [nodes.get(from), nodes.get(to)];
    return first && last ? [{ from: first, to: last, label }] : [];
  });
  return place([...nodes.values()], edges);
}

/** A layer is one further than the furthest it depends on. */
function place(nodes: Node[], edges: Edge[]): Graph {
  const layers = new Map<Node, number>(nodes.map((node) => [node, 0]));
  for (let round = 0; round < nodes.length; round++) {
    let isSettled = true;
    for (const { from, to } of edges) {
      const layer = layers.get(from)! + 1;
      if (layer > layers.get(to)! && layer < nodes.length) {
        layers.set(to, layer);
        isSettled = false;
      }
    }
    if (isSettled) break;
  }
  const taken: number[] = [];
  for (const node of nodes) {
    const layer = layers.get(node)!;
    const row = taken[layer] ?? 0;
    taken[layer] = row + 1;
    node.x = layer * (NODE.width + GAP.x);
    node.y = row * (NODE.height + GAP.y);
  }
  const most = Math.max(1, ...taken);
  return {
    nodes,
    edges,
    width: Math.max(1, taken.length) * (NODE.width + GAP.x) - GAP.x,
    height: most * (NODE.height + GAP.y),
  };
}

/** The line of an edge. One that would run behind the nodes of its row goes around them, below. */
export function pathOf({ from, to }: Edge): string {
  const [x1, y1, x2, y2] = [from.x + NODE.width, from.y + NODE.height / 2, to.x, to.y + NODE.height / 2];
  const middle = (x1 + x2) / 2;
  if (y1 !== y2 || x2 - x1 <= GAP.x) return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
  const below = y1 + NODE.height / 2 + GAP.y / 2;
  return `M${x1} ${y1}C${x1 + GAP.x / 2} ${y1} ${x1} ${below} ${x1 + GAP.x} ${below}L${x2 - GAP.x} ${below}C${x2} ${below} ${x2 - GAP.x / 2} ${y2} ${x2} ${y2}`;
}

/** A label without its escapes: `#34;` is a quote. */
function plain(text: string): string {
  return text.replaceAll(/#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)));
}
