// Looks over a page: an object whose functions list what is wrong on it. Evaluated in the page by browser_walks.py.
({
  // Whatever can be used or is a place on the page, and has no name for a screen reader.
  nameless() {
    const named = (one) => {
      const by = (one.getAttribute('aria-labelledby') ?? '').split(' ').map((id) => document.getElementById(id)?.textContent).join('');
      return [one.getAttribute('aria-label'), by, one.title, one.textContent, ...[...(one.labels ?? [])].map((label) => label.textContent)]
        .some((name) => name?.trim());
    };
    const controls = 'button, a[href], input, select, textarea, summary, meter, dialog[open], nav, aside, section:not([hidden]), [role], [tabindex="0"]';
    return [...document.querySelectorAll(controls)].filter((one) => one.checkVisibility() && !named(one) && one.role !== 'status')
      .map((one) => one.outerHTML.slice(0, 120));
  },

  // Text whose contrast is below what WCAG AA asks for.
  faint() {
    const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
    const light = (colour) => {
      const [r, g, b] = parts(colour).map((one) => { const part = one / 255; return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (one) => {
      for (let at = one; at; at = at.parentElement) {
        const colour = getComputedStyle(at).backgroundColor;
        if (parts(colour).length === 3) return colour;
      }
      return getComputedStyle(document.body).backgroundColor;
    };
    const found = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const one = walker.currentNode.parentElement;
      if (!walker.currentNode.data.trim() || !one.checkVisibility() || one.closest('option, :disabled, svg')) continue;
      const [above, below] = [light(getComputedStyle(one).color), light(behind(one))].sort((a, b) => b - a);
      if ((above + 0.05) / (below + 0.05) < 4.5) found.add(`${one.tagName}.${one.className}: ${one.textContent.slice(0, 40)}`);
    }
    return [...found];
  },

  // What reaches beyond the right edge and can't be scrolled inside a box of its own.
  wide() {
    if (document.documentElement.scrollWidth <= innerWidth) return [];
    return [...document.querySelectorAll('body *')].filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1)
      .map((one) => `${one.tagName}#${one.id}.${one.className} ${Math.round(one.getBoundingClientRect().right)}`);
  },
})
