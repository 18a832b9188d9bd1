"""Topics of documents: anchor words, factorizations and what they say about new documents."""
