// Every text that is seen and has less than 4.5 of contrast to what is behind it; names within a coloured
// area of a chart have their own ink.
(() => {
  const parts = text => { const found = text.match(/[\d.]+/g).map(Number); return found.length > 3 ? found : [...found, 1]; };
  const light = rgb => { const [r, g, b] = rgb.slice(0, 3).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const chain = e => e ? [e, ...chain(e.parentElement)] : [];
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || e.closest("script,style,title,option,.name") || !e.getClientRects().length) continue;
    const above = chain(e), style = getComputedStyle(e), ink = parts(e instanceof SVGElement ? style.fill : style.color);
    const back = above.map(each => parts(getComputedStyle(each).backgroundColor)).find(each => each[3] > .99) || [255, 255, 255];
    const alpha = ink[3] * above.reduce((all, each) => all * getComputedStyle(each).opacity, 1);
    const mixed = [0, 1, 2].map(i => alpha * ink[i] + (1 - alpha) * back[i]);
    const [dark, bright] = [light(mixed), light(back)].sort((a, b) => a - b), contrast = (bright + .05) / (dark + .05);
    if (contrast < 4.5) found.push(contrast.toFixed(2) + " " + walker.currentNode.data.trim().slice(0, 40));
  }
  return found;
})()
