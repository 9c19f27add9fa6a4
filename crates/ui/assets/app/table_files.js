// Which table a file belongs to, by its name: `transaction_items_202401.csv` is one of `transaction_items`, not of `transactions`.

export function tableOf(file, tables) {
  const name = plain(file);
  const fits = tables.filter((table) => name.startsWith(plain(table)) || plain(table).startsWith(name));
  return fits.sort((a, b) => b.length - a.length)[0] ?? null;
}

function plain(name) {
  return name
    .toLowerCase()
    .replace(/\.(csv|tsv|txt)(\.(gz|zst|lz4))?$/, '')
    .replace(/[^a-z]+/g, '_')
    .replace(/_+$/, '');
}
