"""The designer's desk: a page on this machine where the choices behind an audit are moved and answered at once."""
