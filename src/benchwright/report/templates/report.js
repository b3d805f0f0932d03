(function () {
  "use strict";
  var options = { actions: false, renderer: "svg", ast: true };
  var letter = 6.6; // pixels that a letter of an axis title takes on average

  // A copy of a value in which each object went through change.
  function copied(value, change) {
    if (Array.isArray(value)) { return value.map(function (part) { return copied(part, change); }); }
    if (value === null || typeof value !== "object") { return value; }
    var made = {};
    Object.keys(value).forEach(function (key) {
      made[key] = key === "datasets" ? value[key] : copied(value[key], change);
    });
    change(made);
    return made;
  }

  function lines(text, most) {
    var found = [""];
    text.split(" ").forEach(function (word) {
      var last = found.length - 1;
      if (found[last] && found[last].length + word.length >= most) { found.push(word); } else { found[last] = (found[last] + " " + word).trim(); }
    });
    return found;
  }

  // The specification for a box of so many pixels: legends in so many columns, titles of axes in lines that fit.
  function narrowed(spec, columns, width) {
    return copied(spec, function (part) {
      if (part.axis) { part.axis.labelLimit = Math.min(part.axis.labelLimit || width, 0.4 * width); }
      if (part.legend) {
        part.legend.columns = Math.min(part.legend.columns || columns, columns);
        part.legend.labelLimit = 0.8 * width / part.legend.columns;
      }
      ["x", "y"].forEach(function (side) {
        var channel = part[side];
        if (!channel || typeof channel.title !== "string") { return; }
        channel.title = lines(channel.title, (side === "x" ? 0.6 * width : spec.height) / letter);
      });
    });
  }

  function sticksOut(box) {
    var frame = box.querySelector("svg").getBoundingClientRect();
    var parts = box.querySelectorAll(".role-legend, .role-axis-title");
    return Array.prototype.some.call(parts, function (part) {
      var place = part.getBoundingClientRect();
      return place.left < frame.left - 1 || place.right > frame.right + 1 || place.top < frame.top - 1 || place.bottom > frame.bottom + 1;
    });
  }

  function draw(figure) {
    var spec = JSON.parse(figure.querySelector("script").textContent);
    var box = figure.querySelector(".chart");
    function attempt(columns) {
      var width = box.clientWidth;
      return window.vegaEmbed(box, columns < 3 || width < 420 ? narrowed(spec, columns, width) : spec, options).then(function (drawn) {
        if (columns === 1 || !sticksOut(box)) { return drawn; }
        drawn.finalize();
        return attempt(columns - 1);
      });
    }
    attempt(3).then(function () { box.classList.add("drawn"); }, function (error) {
      box.textContent = "This chart could not be drawn: " + error.message;
      box.classList.add("failed");
    });
  }
  Array.prototype.forEach.call(document.querySelectorAll("figure"), draw);
  function openAll() {
    Array.prototype.forEach.call(document.querySelectorAll("details"), function (part) { part.open = true; });
  }
  window.addEventListener("beforeprint", openAll);
})();
