"""One page that shows all of it: the numbers of a report, and the page around them."""
