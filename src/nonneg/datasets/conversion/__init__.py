"""From the files of the sources to the stored arrays; a file a kind of source."""
