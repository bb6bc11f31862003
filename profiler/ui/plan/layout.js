// Where the operators of a plan stand.
//
// In: nodes with numbers, and edges of who takes rows of whom, as an answer of `/sql` has them. Out: a place for each
// node in columns and rows. Rows of data flow down, as on Spark's own page: what reads is on top, the result at the
// bottom. An operator stands above the one that takes its rows, and side by side with the other inputs of that one; one
// that gives to several (an exchange that is used again) stands with the first. Edges may say anything: an end that there
// is not is left out, and a circle is cut where it closes. Pure.

/** Places: `{nodes: [{node, column, row}], edges: [{from, to}], columns, rows}`; columns may be halves. */
export function place(plan) {
  const nodes = new Map(plan.nodes.map((node) => [node.id, node]));
  const edges = plan.edges.filter(({ from, to }) => from !== to && nodes.has(from) && nodes.has(to));
  const inputs = new Map();
  const gives = new Set();
  for (const { from, to } of edges) { inputs.set(to, [...(inputs.get(to) ?? []), from]); gives.add(from); }
  const placed = new Map();
  let columns = 0;
  // From the result up, without recursion: a plan of 400 operators may be one chain.
  const walk = (root) => {
    const stack = [{ id: root, depth: 0, at: 0, over: [] }];
    placed.set(root, { depth: 0 });
    while (stack.length > 0) {
      const top = stack[stack.length - 1];
      const next = (inputs.get(top.id) ?? [])[top.at];
      if (next === undefined) {
        const column = top.over.length > 0 ? (Math.min(...top.over) + Math.max(...top.over)) / 2 : columns++;
        placed.set(top.id, { depth: top.depth, column });
        stack.pop();
        stack[stack.length - 1]?.over.push(column);
      } else {
        top.at += 1;
        if (placed.has(next)) continue;
        placed.set(next, { depth: top.depth + 1 });
        stack.push({ id: next, depth: top.depth + 1, at: 0, over: [] });
      }
    }
  };
  for (const { id } of plan.nodes) if (!gives.has(id)) walk(id);
  // What is left stands in circles.
  for (const { id } of plan.nodes) if (!placed.has(id)) walk(id);
  const rows = Math.max(0, ...[...placed.values()].map((p) => p.depth + 1));
  return {
    nodes: plan.nodes.map((node) => ({ node, column: placed.get(node.id).column, row: rows - 1 - placed.get(node.id).depth })),
    edges, columns, rows,
  };
}
