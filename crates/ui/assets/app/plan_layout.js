// A plan as a graph: tables at the left, stages in columns by what they read, questions at the right.

export const NODE = { width: 168, height: 62, gapX: 36, gapY: 18, margin: 12 };

// Nodes {id, kind: table|stage|question, column, row, x, y, stage?} and edges {from, to, kind}.
export function planGraph(stages) {
  const nodes = new Map();
  const edges = [];
  const put = (id, kind, more = {}) => nodes.get(id) ?? nodes.set(id, { id, kind, column: 0, ...more }).get(id);
  for (const stage of stages) {
    const id = `stage-${stage.stage}`;
    put(id, 'stage', { stage, label: stage.label ?? `stage ${stage.stage}` });
    if (stage.table) {
      put(`table-${stage.table}`, 'table', { label: stage.table });
      edges.push({ from: `table-${stage.table}`, to: id, kind: 'scan' });
    }
    for (const read of stage.reads ?? []) edges.push({ from: `stage-${read}`, to: id, kind: 'log' });
    for (const read of stage.broadcasts ?? []) edges.push({ from: `stage-${read}`, to: id, kind: 'broadcast' });
    if (stage.query) {
      put(`question-${stage.query}`, 'question', { label: stage.query });
      edges.push({ from: id, to: `question-${stage.query}`, kind: 'rows' });
    }
  }
  const known = edges.filter((edge) => nodes.has(edge.from) && nodes.has(edge.to));
  return place([...nodes.values()], known);
}

function place(nodes, edges) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  // Longest path from the tables; a graph of stages has no cycle, but a wrong answer must not hang the page.
  for (let round = 0; round < nodes.length; round += 1) {
    let moved = false;
    for (const { from, to } of edges) {
      const column = byId.get(from).column + 1;
      if (byId.get(to).column < column && column <= nodes.length) {
        byId.get(to).column = column;
        moved = true;
      }
    }
    if (!moved) break;
  }
  const last = Math.max(0, ...nodes.map((node) => node.column));
  for (const node of nodes) {
    if (node.kind === 'question') node.column = last;
    // A table stands right before its first reader.
    if (node.kind === 'table') node.column = Math.min(...edges.filter((edge) => edge.from === node.id).map((edge) => byId.get(edge.to).column)) - 1;
  }
  const columns = Array.from({ length: last + 1 }, (_, column) => nodes.filter((node) => node.column === column));
  for (const column of columns) sortByReads(column, edges, byId);
  const tallest = Math.max(1, ...columns.map((column) => column.length));
  const pitch = NODE.height + NODE.gapY;
  for (const column of columns) {
    const top = ((tallest - column.length) * pitch) / 2;
    column.forEach((node, row) => {
      node.row = row;
      node.x = NODE.margin + node.column * (NODE.width + NODE.gapX);
      node.y = NODE.margin + top + row * pitch;
    });
  }
  const width = columns.length * (NODE.width + NODE.gapX) - NODE.gapX + 2 * NODE.margin;
  const height = tallest * pitch - NODE.gapY + 2 * NODE.margin;
  return { nodes, edges, width, height };
}

// Nodes stand near what they read, so that edges cross less.
function sortByReads(column, edges, byId) {
  const centre = (node) => {
    const sources = edges.filter((edge) => edge.to === node.id).map((edge) => byId.get(edge.from).row ?? 0);
    return sources.length ? sources.reduce((sum, row) => sum + row, 0) / sources.length : 0;
  };
  const centres = new Map(column.map((node) => [node, centre(node)]));
  column.sort((a, b) => centres.get(a) - centres.get(b));
  column.forEach((node, row) => (node.row = row));
}
