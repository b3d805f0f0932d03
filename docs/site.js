// The theme wraps wide tables so that they scroll: this lets a keyboard reach them.
new MutationObserver(() => {
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach(wrap => { wrap.tabIndex = 0; });
}).observe(document.documentElement, { childList: true, subtree: true });
