// What lies in the letter box: asked of the data host, like any record.
async function showLetters(box) {
  const say = (text) => {
    box.replaceChildren(Object.assign(document.createElement('p'), { textContent: text }));
  };
  let rows;
  try {
    const reply = await fetch('/post-room/', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ a: 'letters.list', v: {} }),
    });
    ({ rows } = (await reply.json()).data);
  } catch {
    say('The post room is closed. Start the demo’s data host with “npm run data-host” in a second terminal, and look again.');
    return;
  }
  if (rows.length === 0) {
    say('Nothing. It is early yet.');
    return;
  }
  const list = document.createElement('ul');
  list.className = 'post';
  for (const { id, name, lamp, finish, message } of rows) {
    const item = document.createElement('li');
    const head = document.createElement('h2');
    head.textContent = `From ${name}${lamp ? `, about a ${lamp}${finish ? ` in ${finish}` : ''}` : ''}`;
    const body = document.createElement('p');
    body.textContent = message;
    const ways = document.createElement('p');
    for (const [path, text] of [['change', 'Change it'], ['burn', 'Burn it']]) {
      const link = document.createElement('a');
      link.href = `/letters/${path}/${encodeURIComponent(id)}`;
      link.textContent = text;
      link.setAttribute('aria-label', `${text}: the letter from ${name}`);
      ways.append(link, ' ');
    }
    item.append(head, body, ways);
    list.append(item);
  }
  box.replaceChildren(list);
}
