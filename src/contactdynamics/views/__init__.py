"""Something to look at: pages for the browser, films, files for ParaView and OVITO, tables, from frames of a run."""
