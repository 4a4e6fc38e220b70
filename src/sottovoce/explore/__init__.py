"""The explorer: a page in the browser on which one sees what privacy costs. `sottovoce explore` opens it."""
