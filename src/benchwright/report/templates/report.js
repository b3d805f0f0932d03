(function () {
  "use strict";
  var options = { actions: false, renderer: "svg", ast: true };
  function draw(figure) {
    var spec = JSON.parse(figure.querySelector("script").textContent);
    var box = figure.querySelector(".chart");
    window.vegaEmbed(box, spec, options).catch(function (error) {
      box.textContent = "This chart could not be drawn: " + error.message;
    });
  }
  Array.prototype.forEach.call(document.querySelectorAll("figure"), draw);
  function openAll() {
    Array.prototype.forEach.call(document.querySelectorAll("details"), function (part) { part.open = true; });
  }
  window.addEventListener("beforeprint", openAll);
})();
