const key = node => node.nodeName + node.dataset?.key;
function update(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const {name, value} of fresh.attributes)
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const {name} of [...old.attributes])
    if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  const wanted = [...fresh.childNodes];
  wanted.forEach((node, index) => {
    const rest = [...old.childNodes].slice(index);
    const same = rest.find(each => key(each) === key(node));
    if (same) update(same, node);
    if (rest[0] !== (same ?? node)) old.insertBefore(same ?? node, rest[0] ?? null);
  });
  while (old.childNodes.length > wanted.length) old.lastChild.remove();
}
let loaded = new Date();
setInterval(async () => {
  if (document.hidden || String(getSelection())) return;
  let problem = "";
  try {
    const answer = await fetch(location.href);
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const focused = document.activeElement;
    update(document.querySelector("main"), page.querySelector("main"));
    if (focused.isConnected) focused.focus({preventScroll: true});
    document.title = page.title;
    loaded = new Date();
  } catch (error) {
    problem = `Not updated since ${loaded.toLocaleTimeString()}: ${error.message}`;
    document.title = "not updated: " + document.title.replace(/^not updated: /, "");
  }
  const note = document.querySelector("#problem");
  if (note.textContent !== problem) note.textContent = problem;
}, 5000);
